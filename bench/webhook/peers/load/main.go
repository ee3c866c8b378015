// Posts one body to several addresses in turn, each connection one request at a time, and prints how long the answers
// took. In turn, so that whatever else the machine does meets all of them alike. At a fixed rate the time counts from
// when a request was due, not from when a free connection was found for it.
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

type target struct{ name, url string }

type targets []target

func (t *targets) String() string { return "" }

func (t *targets) Set(text string) error {
	name, url, found := strings.Cut(text, "=")
	if !found {
		return fmt.Errorf("%q is not name=URL", text)
	}
	*t = append(*t, target{name, url})
	return nil
}

type sample struct {
	name string
	took time.Duration
	ok   bool
}

type figures struct {
	Requests int     `json:"requests"`
	Failed   int     `json:"failed"`
	Mean     float64 `json:"mean_ms"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	Max      float64 `json:"max_ms"`
}

func client(certificate, key string, connections int) *http.Client {
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}} // on loopback, like wrk
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			log.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{
		Timeout: 30 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig: config, MaxIdleConnsPerHost: connections, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
		},
	}
}

func post(web *http.Client, url string, body []byte) bool {
	answer, err := web.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err == nil && answer.StatusCode < 300
}

// due hands out the moments at which requests are due; without a rate they are always due.
func due(rate float64, until time.Time) <-chan time.Time {
	moments := make(chan time.Time)
	go func() {
		defer close(moments)
		if rate == 0 {
			for now := time.Now(); now.Before(until); now = time.Now() {
				moments <- time.Time{}
			}
			return
		}
		every := time.Duration(float64(time.Second) / rate)
		for next := time.Now(); next.Before(until); next = next.Add(every) {
			time.Sleep(time.Until(next))
			moments <- next
		}
	}()
	return moments
}

func run(web *http.Client, where targets, body []byte, rate float64, connections int, seconds time.Duration) []sample {
	moments := due(rate, time.Now().Add(seconds))
	found := make([][]sample, connections)
	var all sync.WaitGroup
	for index := range connections {
		all.Go(func() {
			for turn := index; ; turn++ {
				began, open := <-moments
				if !open {
					return
				}
				if began.IsZero() {
					began = time.Now()
				}
				to := where[turn%len(where)]
				ok := post(web, to.url, body)
				found[index] = append(found[index], sample{to.name, time.Since(began), ok})
			}
		})
	}
	all.Wait()
	return slices.Concat(found...)
}

func summary(samples []sample) figures {
	milliseconds := make([]float64, 0, len(samples))
	var found figures
	for _, one := range samples {
		if !one.ok {
			found.Failed++
			continue
		}
		milliseconds = append(milliseconds, float64(one.took.Nanoseconds())/1e6)
		found.Mean += milliseconds[len(milliseconds)-1]
	}
	found.Requests = len(milliseconds)
	if found.Requests == 0 {
		return found
	}
	slices.Sort(milliseconds)
	at := func(share float64) float64 { return milliseconds[int(share*float64(len(milliseconds)-1))] }
	found.Mean /= float64(found.Requests)
	found.P50, found.P99, found.Max = at(0.5), at(0.99), at(1)
	return found
}

func main() {
	var where targets
	flag.Var(&where, "to", "name=URL; may be given several times")
	file := flag.String("body", "", "file with the body")
	rate := flag.Float64("rate", 0, "requests per second over all addresses; 0 is as fast as they are answered")
	connections := flag.Int("connections", 1, "requests under way at most")
	seconds := flag.Float64("seconds", 1, "how long")
	certificate := flag.String("cert", "", "client certificate")
	key := flag.String("key", "", "its key")
	flag.Parse()
	body, err := os.ReadFile(*file)
	if err != nil {
		log.Fatal(err)
	}
	web := client(*certificate, *key, *connections)
	for _, to := range where { // handshakes are not part of the figures
		run(web, targets{to}, body, 0, *connections, 200*time.Millisecond)
	}
	samples := run(web, where, body, *rate, *connections, time.Duration(*seconds*float64(time.Second)))
	found := map[string]figures{}
	for _, to := range where {
		found[to.name] = summary(slices.DeleteFunc(slices.Clone(samples), func(one sample) bool { return one.name != to.name }))
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
}
