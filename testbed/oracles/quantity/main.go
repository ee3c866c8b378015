// Command quantity says how Kubernetes reads quantities: one text per line of standard input, one JSON object per line
// of standard output. The test of our own parser compares the two.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

// longestLine leaves room for a number of many thousand digits, far beyond what a test sends.
const longestLine = 1 << 20

type answer struct {
	OK    bool  `json:"ok"`
	Value int64 `json:"value"`
	Milli int64 `json:"milli"`
}

func read(text string) answer {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return answer{}
	}
	return answer{OK: true, Value: quantity.Value(), Milli: quantity.MilliValue()}
}

func run() error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<16), longestLine)
	output := bufio.NewWriter(os.Stdout)
	answers := json.NewEncoder(output)
	for lines.Scan() {
		if err := answers.Encode(read(lines.Text())); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return output.Flush()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
