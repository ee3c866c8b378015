// Package placement holds what both webhooks put into a pod: the same three things that ours does by default.
package placement

const (
	ManagedLabel = "scheduler.alpha.kubernetes.io/managed"
	Managed      = "true"
	CapacityKey  = "node.kubernetes.io/capacity"
	Spot         = "spot"
	TaintEffect  = "NoSchedule"
	Weight       = 10
)
