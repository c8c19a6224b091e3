package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

// viewers has one viewer, and then a thousand, follow a context's transcript through a gateway during long answers of
// fifty tokens per second.
func viewers(r *runner) error {
	t := r.context("viewed")
	if _, err := t.turn(message("begin-viewed")); err != nil {
		return err
	}
	gateway, err := r.StartGateway(r.ctx)
	if err != nil {
		return err
	}
	defer func() { _ = gateway.Stop() }()
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	a := &audience{ctx: ctx, fail: cancel, url: gateway.Ready["url"] + "/contexts/" + t.name + "/transcript", saw: make(chan []time.Duration)}
	defer a.watching.Wait()
	defer cancel(nil)
	all := r.times(1000)
	var memory samples
	for _, n := range []int{1, all} {
		if err := a.grow(n); err != nil {
			return err
		}
		var delays samples
		memory = nil
		for round := range r.times(5) {
			m := rig.Message{Key: fmt.Sprintf("viewed-by-%d-%d", n, round), Tokens: 250, Every: 20 * time.Millisecond}
			if _, err := t.turn(m); err != nil {
				return err
			}
			for range n {
				select {
				case one := <-a.saw:
					if len(one) != m.Tokens {
						return fmt.Errorf("a viewer saw %d tokens of %d", len(one), m.Tokens)
					}
					delays.add(one...)
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(turnTimeout):
					return errors.New("a viewer did not see the end of the answer")
				}
			}
			used, _ := gateway.Memory()
			memory = append(memory, float64(used)/mb)
		}
		name := "viewer_delta_ms"
		if n > 1 {
			name = "viewers_1000_delta_ms"
		}
		r.report.add(name, "ms", delays)
	}
	r.report.add("gateway_rss_1000_mb", "MB", memory)
	// The growth from the first answer to the last.
	r.report.add("gateway_rss_1000_growth_mb", "MB", samples{memory[len(memory)-1] - memory[0]})
	return nil
}

// audience are viewers of a transcript, which follow it as the web page does.
type audience struct {
	ctx      context.Context
	fail     context.CancelCauseFunc
	url      string
	viewers  int
	watching sync.WaitGroup
	saw      chan []time.Duration // the delays of the tokens of an answer, from each viewer
}

// grow returns when n viewers have received the document.
func (a *audience) grow(n int) error {
	var connecting sync.WaitGroup
	for ; a.viewers < n; a.viewers++ {
		connecting.Add(1)
		a.watching.Go(func() {
			connected := sync.OnceFunc(connecting.Done)
			defer connected()
			if err := a.watch(connected); err != nil && a.ctx.Err() == nil {
				a.fail(fmt.Errorf("view %s: %w", a.url, err))
			}
		})
	}
	connecting.Wait()
	return context.Cause(a.ctx)
}

// watch takes the times of tokens from each patch, and the entry with the token usage as the end of the answer. It does
// not decode patches, which keeps the CPU use of a thousand viewers low.
func (a *audience) watch(connected func()) error {
	request, err := http.NewRequestWithContext(a.ctx, http.MethodGet, a.url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Accept-Encoding", "identity")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	var delays []time.Duration
	var last time.Time // when the model wrote the newest token
	for lines := bufio.NewReader(response.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		now := time.Now()
		switch kind, data, _ := strings.Cut(line, ": "); {
		case kind == "event" && data == "document\n":
			if len(delays) > 0 {
				return errors.New("received a document in the middle of an answer")
			}
			connected()
		case kind == "data" && strings.HasPrefix(data, "["):
			// The other words of a patch are no times. The whole answer at the end repeats its tokens.
			for word := range strings.FieldsFuncSeq(data, func(r rune) bool { return r == ' ' || r == '"' }) {
				if at, ok := rig.WrittenAt(word); ok && at.After(last) {
					delays, last = append(delays, now.Sub(at)), at
				}
			}
			if strings.Contains(data, `"token_usage_info"`) && len(delays) > 0 {
				select {
				case a.saw <- delays:
				case <-a.ctx.Done():
					return nil
				}
				delays = nil
			}
		}
	}
}
