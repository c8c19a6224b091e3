package chronicletest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// script collects what llmtest reports to a test.
type script struct {
	mu       sync.Mutex
	problems []error
	cleanups []func()
}

func (*script) Helper() {}

func (s *script) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *script) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Errorf(format, args...))
}

func (s *script) close() error {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.problems...)
}
