// A webhook as lean as Go's standard library makes it: only the fields it needs are decoded, and the operations are
// written by hand.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"path/filepath"
	"strings"

	"spotshift.dev/bench/webhook/placement"
)

const bodyLimit = 4 << 20

type incoming struct {
	Request *struct {
		UID    string `json:"uid"`
		Object struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec struct {
				Tolerations []json.RawMessage `json:"tolerations"`
				Affinity    *struct {
					NodeAffinity *struct {
						Preferred []json.RawMessage `json:"preferredDuringSchedulingIgnoredDuringExecution"`
					} `json:"nodeAffinity"`
				} `json:"affinity"`
			} `json:"spec"`
		} `json:"object"`
	} `json:"request"`
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

type response struct {
	UID       string `json:"uid"`
	Allowed   bool   `json:"allowed"`
	Patch     []byte `json:"patch,omitempty"`
	PatchType string `json:"patchType,omitempty"`
}

type outgoing struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Response   response `json:"response"`
}

type object = map[string]any

var (
	preference = object{
		"weight": placement.Weight,
		"preference": object{"matchExpressions": []object{
			{"key": placement.CapacityKey, "operator": "In", "values": []string{placement.Spot}},
		}},
	}
	toleration = object{
		"key": placement.CapacityKey, "operator": "Equal", "value": placement.Spot, "effect": placement.TaintEffect,
	}
)

func operations(review *incoming) []operation {
	pod := &review.Request.Object
	if pod.Metadata.Labels[placement.ManagedLabel] == placement.Managed {
		return nil
	}
	return []operation{label(pod.Metadata.Labels), affinity(review), tolerate(pod.Spec.Tolerations)}
}

func label(own map[string]string) operation {
	if own == nil {
		return operation{"add", "/metadata/labels", object{placement.ManagedLabel: placement.Managed}}
	}
	key := strings.ReplaceAll(placement.ManagedLabel, "/", "~1")
	return operation{"add", "/metadata/labels/" + key, placement.Managed}
}

func affinity(review *incoming) operation {
	const field = "preferredDuringSchedulingIgnoredDuringExecution"
	own := review.Request.Object.Spec.Affinity
	list := []object{preference}
	switch {
	case own == nil:
		return operation{"add", "/spec/affinity", object{"nodeAffinity": object{field: list}}}
	case own.NodeAffinity == nil:
		return operation{"add", "/spec/affinity/nodeAffinity", object{field: list}}
	case own.NodeAffinity.Preferred == nil:
		return operation{"add", "/spec/affinity/nodeAffinity/" + field, list}
	}
	return operation{"add", "/spec/affinity/nodeAffinity/" + field + "/-", preference}
}

func tolerate(own []json.RawMessage) operation {
	if own == nil {
		return operation{"add", "/spec/tolerations", []object{toleration}}
	}
	return operation{"add", "/spec/tolerations/-", toleration}
}

func mutate(writer http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(writer, request.Body, bodyLimit))
	if err != nil {
		http.Error(writer, "the body is too large", http.StatusRequestEntityTooLarge)
		return
	}
	var review incoming
	if err := json.Unmarshal(body, &review); err != nil || review.Request == nil {
		http.Error(writer, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	answer := response{UID: review.Request.UID, Allowed: true}
	if found := operations(&review); found != nil {
		if answer.Patch, err = json.Marshal(found); err != nil {
			http.Error(writer, "internal error", http.StatusInternalServerError)
			return
		}
		answer.PatchType = "JSONPatch"
	}
	encoded, err := json.Marshal(outgoing{"admission.k8s.io/v1", "AdmissionReview", answer})
	if err != nil {
		http.Error(writer, "internal error", http.StatusInternalServerError)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_, _ = writer.Write(encoded)
}

func main() {
	port := flag.Int("port", 8443, "port on loopback")
	folder := flag.String("certs", ".", "folder with tls.crt and tls.key")
	flag.Parse()
	routes := http.NewServeMux()
	routes.HandleFunc("POST /mutate", mutate)
	server := &http.Server{Addr: fmt.Sprintf("127.0.0.1:%d", *port), Handler: routes}
	err := server.ListenAndServeTLS(filepath.Join(*folder, "tls.crt"), filepath.Join(*folder, "tls.key"))
	if !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}
