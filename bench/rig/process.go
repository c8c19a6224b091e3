package rig

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
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/child"
)

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

// addresses has the addresses of the parts started so far, and settings of the model and of NATS.
type addresses struct {
	Temporal string  `json:"temporal,omitempty"`
	NATS     string  `json:"nats,omitempty"`
	Model    string  `json:"model,omitempty"`
	Blobs    string  `json:"blobs,omitempty"`
	Gateway  string  `json:"gateway,omitempty"`
	Faults   float64 `json:"faults,omitempty"`
	Seed     uint64  `json:"seed,omitempty"`
	// Checked is whether the model checks requests.
	Checked bool `json:"checked,omitempty"`
	// NATSPort is the port of the NATS server; 0: any free port.
	NATSPort int `json:"natsPort,omitempty"`
}

type self struct {
	addresses
	orders *json.Decoder
	mu     sync.Mutex // guards out
	out    *json.Encoder
}

func (s *self) report(o Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.Encode(o) // an error means that the parent has ended
}

// order is a line of the standard input of a process. The end of the input stops the process.
type order struct {
	// Follow is a context, or the workflow id of a bare workflow.
	Follow string `json:"follow,omitempty"`
	// Gateway is the URL of the gateway through which to follow a context; empty: none.
	Gateway string `json:"gateway,omitempty"`
	Bare    bool   `json:"bare,omitempty"`
	Ask     string `json:"ask,omitempty"`
	// View is the context that Viewers follow.
	View    string `json:"view,omitempty"`
	Viewers int    `json:"viewers,omitempty"`
}

// next waits for an order; ok is false at the end of the orders.
func (s *self) next() (o order, ok bool) { return o, s.orders.Decode(&o) == nil }

// Main must be called first in main. In a process that was started as a part of the rig,
// it runs that part and does not return.
func Main() {
	if len(os.Args) != 3 {
		return
	}
	run, ok := map[role]func(*self) error{
		roleNATS: serveNATS, roleModel: serveModel, roleWatch: watch, roleDirect: callModel, roleBare: workBare,
		roleGateway: serveGateway, roleView: view,
	}[role(os.Args[1])]
	if !ok {
		return
	}
	s := &self{orders: json.NewDecoder(os.Stdin), out: json.NewEncoder(os.Stdout)}
	err := json.Unmarshal([]byte(os.Args[2]), &s.addresses)
	if err == nil {
		err = run(s)
	}
	if err != nil {
		s.report(Observation{Kind: Broken, Key: os.Args[1], At: time.Now(), Value: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

type subprocess struct {
	process *child.Process
	mu      sync.Mutex // guards orders
	orders  *json.Encoder
	stdin   io.Closer
	address string
}

func start(ctx context.Context, r role, at addresses, notes *Observations) (*subprocess, error) {
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
	_ = in.Close() // the child has a copy
	if err != nil {
		return nil, err
	}
	p := &subprocess{process: process, orders: json.NewEncoder(stdin), stdin: stdin}
	ready := make(chan string, 1)
	go func() {
		defer out.Close()
		for decoder := json.NewDecoder(bufio.NewReader(out)); ; {
			var n Observation
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
	case address, ok := <-ready:
		if !ok {
			p.stop()
			return nil, fmt.Errorf("%s ended before it was ready: %w", r, cmp.Or(notes.failure(), process.Err(), errors.New("exit status 0")))
		}
		p.address = address
		return p, nil
	case <-ctx.Done():
		p.stop()
		return nil, context.Cause(ctx)
	}
}

func (p *subprocess) order(o order) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.orders.Encode(o)
}

func (p *subprocess) stop() {
	if p != nil {
		_ = p.stdin.Close()
		_ = p.process.Stop(stopTimeout)
	}
}

// stopTimeout is how long a process may take to stop before it is killed.
const stopTimeout = 15 * time.Second
