package npmtest

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Script is a program in Node that takes commands and writes results, as lines of JSON.
type Script struct {
	tb      testing.TB
	kill    func()
	in      *json.Encoder
	results *json.Decoder
}

const timeout = time.Minute // for each result; it only detects hangs

// Start starts a program in a folder. It ends with the test.
func Start(tb testing.TB, dir, program string, args ...string) *Script {
	tb.Helper()
	cmd := exec.Command("node", append([]string{program}, args...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	kill := func() { _ = cmd.Process.Kill() }
	tb.Cleanup(func() {
		defer time.AfterFunc(timeout, kill).Stop()
		_ = in.Close() // it ends at the end of its input
		_ = cmd.Wait()
	})
	return &Script{tb, kill, json.NewEncoder(in), json.NewDecoder(out)}
}

// Send sends a command.
func (s *Script) Send(command any) {
	s.tb.Helper()
	if err := s.in.Encode(command); err != nil {
		s.tb.Fatal(err)
	}
}

// Receive decodes the next result.
func (s *Script) Receive(result any) {
	s.tb.Helper()
	defer time.AfterFunc(timeout, s.kill).Stop()
	if err := s.results.Decode(result); err != nil {
		s.tb.Fatal("the script ended: ", err)
	}
}
