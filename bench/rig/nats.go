package rig

import (
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/natsserver"
)

func serveNATS(s *self) error {
	server, err := natsserver.Start(natsserver.Options{Port: s.NATSPort})
	if err != nil {
		return err
	}
	defer server.Shutdown()
	s.report(Observation{Kind: Ready, At: time.Now(), Value: server.URL()})
	s.next()
	return nil
}
