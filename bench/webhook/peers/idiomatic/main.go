// A webhook as its authors' guides write it: controller-runtime's server and decoder, the pod changed as a typed
// object, and the patch computed from the difference.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"spotshift.dev/bench/webhook/placement"
)

type preferSpot struct{ decoder admission.Decoder }

func (p *preferSpot) Handle(_ context.Context, request admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := p.decoder.Decode(request, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if pod.Labels[placement.ManagedLabel] == placement.Managed {
		return admission.Allowed("")
	}
	change(pod)
	changed, err := json.Marshal(pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

func change(pod *corev1.Pod) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[placement.ManagedLabel] = placement.Managed
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.NodeAffinity == nil {
		pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	node := pod.Spec.Affinity.NodeAffinity
	rule := corev1.NodeSelectorRequirement{
		Key: placement.CapacityKey, Operator: corev1.NodeSelectorOpIn, Values: []string{placement.Spot},
	}
	node.PreferredDuringSchedulingIgnoredDuringExecution = append(
		node.PreferredDuringSchedulingIgnoredDuringExecution,
		corev1.PreferredSchedulingTerm{
			Weight:     placement.Weight,
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{rule}},
		},
	)
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
		Key:      placement.CapacityKey,
		Operator: corev1.TolerationOpEqual,
		Value:    placement.Spot,
		Effect:   corev1.TaintEffect(placement.TaintEffect),
	})
}

func main() {
	port := flag.Int("port", 8443, "port on loopback")
	folder := flag.String("certs", ".", "folder with tls.crt and tls.key")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		log.Fatal(err)
	}
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: *port, CertDir: *folder})
	server.Register("/mutate", &webhook.Admission{Handler: &preferSpot{admission.NewDecoder(scheme)}})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := server.Start(ctx); err != nil {
		log.Fatal(err)
	}
}
