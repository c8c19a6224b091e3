package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

func serveGateway(s *self) error {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	contexts, err := client.Dial(ctx, client.Config{Address: s.Temporal, NATSURL: s.NATS, BlobURL: s.Blobs})
	if err != nil {
		return err
	}
	defer contexts.Shutdown()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() {
		served <- gateway.New(contexts, gateway.Options{Rate: -1, StreamsPerAddress: -1}).Serve(ctx, listener)
	}()
	s.report(Observation{Kind: Ready, At: time.Now(), Value: listener.Addr().String()})
	s.next()
	end()
	return <-served
}

type Gateway struct {
	gateway, viewers *subprocess
	notes            *Observations
}

func (r *Rig) StartGateway(ctx context.Context) (*Gateway, error) {
	server, err := start(ctx, roleGateway, r.addresses, r.Observations)
	if err != nil {
		return nil, fmt.Errorf("start the gateway: %w", err)
	}
	at := r.addresses
	at.Gateway = server.address
	viewers, err := start(ctx, roleView, at, r.Observations)
	if err != nil {
		server.stop()
		return nil, fmt.Errorf("start the viewers: %w", err)
	}
	return &Gateway{gateway: server, viewers: viewers, notes: r.Observations}, nil
}

func (g *Gateway) Stop() {
	g.viewers.stop()
	g.gateway.stop()
}

func (g *Gateway) RSS() (int64, error) { return rss(g.gateway.process.PID()) }

// View replaces the viewers. It returns when all have received the transcript of the context.
func (g *Gateway) View(ctx context.Context, name string, viewers int) error {
	o := order{View: name, Viewers: viewers}
	if err := g.viewers.order(o); err != nil {
		return err
	}
	_, err := g.notes.Await(ctx, Viewing, o.viewing())
	return err
}

func (o order) viewing() string { return fmt.Sprintf("%s by %d", o.View, o.Viewers) }

// view follows transcripts as the web page does, until its input is closed.
func view(s *self) error {
	s.report(Observation{Kind: Ready, At: time.Now()})
	leave := func() {}
	for {
		o, ok := s.next()
		leave()
		if !ok {
			return nil
		}
		ctx, cancel := context.WithCancel(context.Background())
		leave = cancel
		a := &audience{viewers: o.Viewers, seen: map[string]*views{}, report: s.report}
		var connecting sync.WaitGroup
		for range o.Viewers {
			connecting.Add(1)
			go func() {
				if err := a.watch(ctx, s.Gateway, o.View, connecting.Done); err != nil && ctx.Err() == nil {
					s.report(Observation{Kind: Broken, Key: o.View, At: time.Now(), Value: err.Error()})
				}
			}()
		}
		connecting.Wait()
		s.report(Observation{Kind: Viewing, Key: o.viewing(), At: time.Now()})
	}
}

type audience struct {
	viewers int
	report  func(Observation)

	mu   sync.Mutex
	seen map[string]*views // by message key
}

type views struct {
	viewers int
	delays  []time.Duration
}

// add records what one viewer saw of an answer, and reports the answer after the last
// viewer.
func (a *audience) add(key string, delays []time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v := a.seen[key]
	if v == nil {
		v = &views{}
		a.seen[key] = v
	}
	v.viewers++
	v.delays = append(v.delays, delays...)
	if v.viewers == a.viewers {
		delete(a.seen, key)
		a.report(Observation{Kind: Viewed, Key: key, At: time.Now(), Delays: v.delays})
	}
}

// watch runs one viewer. It takes the appended text from each patch, and the entry with
// the token usage as the end of the answer. It calls connected when it has the document.
func (a *audience) watch(ctx context.Context, address, name string, connected func()) error {
	connected = sync.OnceFunc(connected)
	defer connected()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET /contexts/%s/transcript HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", name, address); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the transcript of %s: %s", name, response.Status)
	}
	var key string
	var delays []time.Duration
	for lines := bufio.NewReader(response.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		now := time.Now()
		kind, data, _ := strings.Cut(line, ": ")
		switch {
		case kind == "event" && data == "document\n":
			if key != "" {
				return errors.New("a viewer received a document in the middle of an answer")
			}
			connected()
		case kind == "data" && strings.HasPrefix(data, "["):
			added, err := addedBy(data)
			if err != nil {
				return err
			}
			for word := range strings.FieldsSeq(added.text) {
				if of, ok := strings.CutPrefix(word, "re:"); ok {
					key = of
				} else if at, ok := writtenAt(word); ok {
					delays = append(delays, now.Sub(at))
				}
			}
			if added.end && key != "" {
				a.add(key, delays)
				key, delays = "", delays[:0]
			}
		}
	}
}

type addition struct {
	text string // of a streaming answer
	end  bool
}

func addedBy(patch string) (a addition, err error) {
	// Nearly all patches append one piece. A fast path for them keeps the CPU use of a
	// thousand viewers on the measured machine low.
	if _, value, ok := strings.Cut(patch, `/chunks/-","value":"`); ok {
		if text, ok := strings.CutSuffix(value, `"}]`+"\n"); ok && !strings.ContainsAny(text, `"\`) {
			return addition{text: text}, nil
		}
	}
	var operations []struct {
		Path  string
		Value json.RawMessage
	}
	if err := json.Unmarshal([]byte(patch), &operations); err != nil {
		return a, fmt.Errorf("patch %s: %w", patch, err)
	}
	for _, o := range operations {
		if strings.HasSuffix(o.Path, "/chunks/-") {
			var piece string
			if err := json.Unmarshal(o.Value, &piece); err != nil {
				return a, fmt.Errorf("patch %s: %w", patch, err)
			}
			a.text += piece
			continue
		}
		var item struct {
			Content struct {
				EntryType struct{ Type string } `json:"entry_type"`
				Chunks    []string
			}
		}
		_ = json.Unmarshal(o.Value, &item) // other values are not entries
		a.text += strings.Join(item.Content.Chunks, "")
		a.end = a.end || item.Content.EntryType.Type == "token_usage_info"
	}
	return a, nil
}
