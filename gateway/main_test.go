package gateway_test

import (
	"testing"

	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
)

func TestMain(m *testing.M) {
	defer browsertest.Stop()
	m.Run()
}
