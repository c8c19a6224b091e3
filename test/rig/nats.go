package rig

import "github.com/seed-9ed7edd4/chronicle/internal/natsserver"

func serveNATS(r *role) error {
	server, err := natsserver.Start(natsserver.Options{Port: r.Port})
	if err != nil {
		return err
	}
	r.ready(server.URL())
	select {}
}
