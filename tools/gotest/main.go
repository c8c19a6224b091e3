// Command gotest runs go test and lists in one line at the end what was skipped:
//
//	skipped: 19 browser tests, no Chromium on PATH
//
// It takes the arguments of go test, prints what go test prints and exits with
// its exit code. Tests skip with a message of the form "browser tests, no
// Chromium on PATH": what they are, in the plural, and why they do not run.
//
// Since many tests wait for servers, it runs more tests at a time than there are
// processors: n packages on n processors, and up to 2n parallel tests of each
// package. The flags -p and -parallel override these numbers.
//
//	gotest -race ./... + -run Large ./large
//
// runs go test twice, one run after the other: at the same time, they would overload the machine. It
// exits with the first exit code that is not 0.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

const separator = "+" // of several runs

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT) // a Ctrl-C reaches go test by itself
	first, others := split(os.Args[1:])
	code := goTest(ctx, first, os.Stdout, os.Stderr)
	for _, args := range others {
		code = cmp.Or(code, goTest(ctx, args, os.Stdout, os.Stderr))
	}
	os.Exit(code)
}

func split(args []string) (first []string, others [][]string) {
	i := slices.Index(args, separator)
	if i < 0 {
		return args, nil
	}
	second, rest := split(args[i+1:])
	return args[:i], append([][]string{second}, rest...)
}

// goTest runs go test and returns its exit code. SIGTERM stops it when ctx ends.
func goTest(ctx context.Context, args []string, out, errOut io.Writer) (code int) {
	processors := runtime.NumCPU()
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json",
		fmt.Sprintf("-p=%d", processors), fmt.Sprintf("-parallel=%d", 2*processors)}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stderr = errOut
	r := newReport(out, slices.Contains(args, "-v"))
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		err = errors.Join(r.read(events), cmd.Wait())
	}
	if r.failed {
		fmt.Fprintln(out, "FAIL")
	}
	if summary := r.skipped(); summary != "" {
		fmt.Fprintln(out, summary)
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	default:
		fmt.Fprintln(errOut, "gotest:", err)
		return 1
	}
}

// testEvent is a line of go test -json; see go doc test2json.
type testEvent struct {
	Action, Package, Test, Output string
}

type report struct {
	out     io.Writer
	verbose bool
	running map[string]*result
	order   []string // packages that are running, in the order of their first event
	reasons []string
	counts  map[string]int // skipped tests by reason
	failed  bool
}

type result struct {
	lines   []testEvent
	printed int               // lines that are printed already
	ended   map[string]string // test to the action that ended it
}

func newReport(out io.Writer, verbose bool) *report {
	return &report{out: out, verbose: verbose, running: map[string]*result{}, counts: map[string]int{}}
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e testEvent
			if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
				fmt.Fprint(r.out, line)
			} else {
				r.add(e)
			}
		}
		if err != nil {
			// A package that has no end was killed.
			for _, name := range slices.Clone(r.order) {
				r.end(name, "fail")
			}
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

func (r *report) add(e testEvent) {
	if e.Action == "build-output" {
		fmt.Fprint(r.out, e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p := r.running[e.Package]
	if p == nil {
		p = &result{ended: map[string]string{}}
		r.running[e.Package] = p
		r.order = append(r.order, e.Package)
	}
	switch e.Action {
	case "output":
		p.lines = append(p.lines, e)
		r.stream()
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.end(e.Package, e.Action)
			return
		}
		p.ended[e.Test] = e.Action
		if e.Action == "skip" {
			r.skip(reason(p.lines, e.Test))
		}
	}
}

// With -v, stream prints what the first running package has printed so far.
func (r *report) stream() {
	if r.verbose && len(r.order) > 0 {
		r.running[r.order[0]].printAll(r.out)
	}
}

func (r *report) end(name, action string) {
	p := r.running[name]
	if r.verbose {
		p.printAll(r.out)
	} else {
		p.print(r.out, action)
	}
	r.failed = r.failed || action == "fail"
	delete(r.running, name)
	r.order = slices.DeleteFunc(r.order, func(other string) bool { return other == name })
	r.stream()
}

func (p *result) printAll(out io.Writer) {
	for _, line := range p.lines[p.printed:] {
		fmt.Fprint(out, line.Output)
	}
	p.printed = len(p.lines)
}

func (p *result) print(out io.Writer, action string) {
	if action == "fail" {
		p.printTests(out, "", "")
	}
	for _, line := range p.lines {
		switch {
		case line.Test != "" || line.Output == "PASS\n":
		case action == "fail", strings.HasPrefix(line.Output, "ok  \t"), strings.HasPrefix(line.Output, "?   \t"), strings.HasPrefix(line.Output, "\t"):
			fmt.Fprint(out, line.Output)
		}
	}
}

// parent is "" for top-level tests.
func (p *result) printTests(out io.Writer, parent, indent string) {
	seen := map[string]bool{}
	for _, line := range p.lines {
		name, ok := strings.CutPrefix(line.Test, parent)
		if action := p.ended[line.Test]; !ok || seen[line.Test] || name == "" || strings.Contains(name, "/") || action == "pass" || action == "skip" {
			continue
		}
		seen[line.Test] = true
		for _, isHeader := range []bool{true, false} {
			for _, l := range p.lines {
				if l.Test == line.Test && !strings.HasPrefix(l.Output, "=== ") && strings.HasPrefix(l.Output, "--- ") == isHeader {
					fmt.Fprint(out, indent, l.Output)
				}
			}
		}
		p.printTests(out, line.Test+"/", indent+"    ")
	}
}

func reason(lines []testEvent, test string) string {
	for _, line := range slices.Backward(lines) {
		if line.Test != test {
			continue
		}
		if _, message, ok := strings.Cut(line.Output, ".go:"); ok && strings.HasPrefix(line.Output, "    ") {
			if _, message, ok = strings.Cut(message, ": "); ok {
				return strings.TrimSpace(message)
			}
		}
	}
	return "tests, no reason given"
}

func (r *report) skip(reason string) {
	if r.counts[reason] == 0 {
		r.reasons = append(r.reasons, reason)
	}
	r.counts[reason]++
}

func (r *report) skipped() string {
	var parts []string
	slices.Sort(r.reasons)
	for _, reason := range r.reasons {
		count := r.counts[reason]
		if !strings.Contains(reason, "tests, ") {
			reason = "tests, " + reason
		}
		if count == 1 {
			reason = strings.Replace(reason, "tests, ", "test, ", 1)
		}
		parts = append(parts, fmt.Sprintf("%d %s", count, reason))
	}
	if parts == nil {
		return ""
	}
	return "skipped: " + strings.Join(parts, "; ")
}
