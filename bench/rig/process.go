package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/child"
)

// role is what a process of this executable does when it is not the one that
// the user started.
type role string

const (
	roleNATS    role = "rig-nats"
	roleModel   role = "rig-model"
	roleWatch   role = "rig-watch"
	roleDirect  role = "rig-direct"
	roleBare    role = "rig-bare"
	roleGateway role = "rig-gateway"
	roleView    role = "rig-view"
)

// places are where things are, as far as they were started.
type places struct {
	Temporal string  `json:"temporal,omitempty"`
	NATS     string  `json:"nats,omitempty"`
	Model    string  `json:"model,omitempty"`
	Blobs    string  `json:"blobs,omitempty"`
	Gateway  string  `json:"gateway,omitempty"`
	Faults   float64 `json:"faults,omitempty"`
	Seed     uint64  `json:"seed,omitempty"`
	// NATSPort is where the NATS server listens; 0: any that is free.
	NATSPort int `json:"natsPort,omitempty"`
}

// self is a process of the rig from its own point of view.
type self struct {
	places
	orders *json.Decoder
	mu     sync.Mutex // guards out
	out    *json.Encoder
}

// note tells what was seen.
func (s *self) note(n Note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// An error means that nobody is left to be told.
	_ = s.out.Encode(n)
}

// order is what a process is asked to do while it runs.
type order struct {
	// Follow is a context, or the workflow id of a bare loop.
	Follow string `json:"follow,omitempty"`
	Bare   bool   `json:"bare,omitempty"`
	// Ask is a message for the model.
	Ask string `json:"ask,omitempty"`
	// View is a context for so many viewers.
	View    string `json:"view,omitempty"`
	Viewers int    `json:"viewers,omitempty"`
}

// next waits for an order; ok is false when there will be no more.
func (s *self) next() (o order, ok bool) { return o, s.orders.Decode(&o) == nil }

// Main must be called first in main. When this process was started as one of
// the rig's, it does that work and does not return.
func Main() {
	if len(os.Args) != 3 {
		return
	}
	run, ok := map[role]func(*self) error{
		roleNATS: serveNATS, roleModel: serveModel, roleWatch: watch, roleDirect: readDirectly, roleBare: workBare,
		roleGateway: serveGateway, roleView: view,
	}[role(os.Args[1])]
	if !ok {
		return
	}
	s := &self{orders: json.NewDecoder(os.Stdin), out: json.NewEncoder(os.Stdout)}
	err := json.Unmarshal([]byte(os.Args[2]), &s.places)
	if err == nil {
		err = run(s)
	}
	if err != nil {
		s.note(Note{Kind: Broken, Key: os.Args[1], At: time.Now(), Value: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

// peer is another process of the rig.
type peer struct {
	process *child.Process
	mu      sync.Mutex // guards orders
	orders  *json.Encoder
	stdin   io.Closer
	// where is what the process said when it was ready.
	where string
}

// start starts a process and waits until it is ready.
func start(ctx context.Context, r role, at places, notes *Notes) (*peer, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arguments, err := json.Marshal(at)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(executable, string(r), string(arguments))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = in
	process, err := child.Start(cmd, child.Options{OwnGroup: true})
	_ = in.Close() // the process has its own
	if err != nil {
		return nil, err
	}
	p := &peer{process: process, orders: json.NewEncoder(stdin), stdin: stdin}
	ready := make(chan string, 1)
	go func() {
		defer out.Close()
		for decoder := json.NewDecoder(bufio.NewReader(out)); ; {
			var n Note
			switch err := decoder.Decode(&n); {
			case err != nil:
				close(ready)
				return
			case n.Kind == Ready:
				ready <- n.Value
			default:
				notes.add(n)
			}
		}
	}()
	select {
	case where, ok := <-ready:
		if !ok {
			return nil, fmt.Errorf("%s ended before it was ready: %w", r, notes.err)
		}
		p.where = where
		return p, nil
	case <-ctx.Done():
		p.stop()
		return nil, context.Cause(ctx)
	}
}

func (p *peer) order(o order) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.orders.Encode(o)
}

// stop ends the process.
func (p *peer) stop() {
	if p != nil {
		_ = p.stdin.Close()
		_ = p.process.Stop(stopWithin)
	}
}

// stopWithin is how long a process may take to end before it is killed.
const stopWithin = 15 * time.Second
