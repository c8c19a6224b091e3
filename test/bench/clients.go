package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

// protocol is a way to the gateway. The first one is the gateway's own, with which the others are compared.
type protocol struct {
	name string
	ask  call   // sends a message; those of other protocols stream the answer
	join call   // follows the running answer from its beginning
	end  string // in the last event of an answer
}

// call is a request about a message. Path and body contain {context}, {key} and {text}, and those of a running answer
// {counter}, that of the event with the message. The key is also the Idempotency-Key.
type call struct{ method, path, body string }

var protocols = []protocol{
	{
		name: "events",
		ask:  call{http.MethodPost, "/contexts/{context}/events", `{"_tag":"UserMessageEvent","content":"{text}"}`},
		join: call{http.MethodGet, "/contexts/{context}/events", ""},
		end:  "LLMRequestCompletedEvent",
	},
	{
		name: "responses",
		ask:  call{http.MethodPost, "/v1/responses", `{"conversation":"{context}","input":"{text}","stream":true}`},
		join: call{http.MethodGet, "/v1/responses/resp_{context}_{counter}?stream=true", ""},
		end:  `"response.completed"`,
	},
	{
		name: "chat",
		ask:  call{http.MethodPost, "/v1/chat/completions", chatBody},
		join: call{http.MethodPost, "/v1/chat/completions", chatBody}, // repeated with its key
		end:  "[DONE]",
	},
	{
		name: "aisdk",
		ask:  call{http.MethodPost, "/api/chat", `{"id":"{context}","messages":[{"id":"{key}","role":"user","parts":[{"type":"text","text":"{text}"}]}]}`},
		join: call{http.MethodGet, "/api/chat/{context}/stream", ""},
		end:  "[DONE]",
	},
	{
		name: "agui",
		ask:  call{http.MethodPost, "/ag-ui/run", `{"threadId":"{context}","runId":"{key}","messages":[{"id":"{key}","role":"user","content":"{text}"}]}`},
		join: call{http.MethodPost, "/ag-ui/run", `{"threadId":"{context}","runId":"{key}","messages":[]}`},
		end:  `"RUN_FINISHED"`,
	},
}

const chatBody = `{"model":"default","metadata":{"context":"{context}"},"messages":[{"role":"user","content":"{text}"}],"stream":true}`

// question is a message to a context.
type question struct {
	rig.Message
	context string
	counter int // of its event; 0: not known
}

func (c call) request(r *runner, gateway *rig.Process, q question) (*http.Request, error) {
	fill := strings.NewReplacer("{context}", q.context, "{key}", q.Key, "{text}", q.String(), "{counter}", fmt.Sprintf("%04d", q.counter))
	request, err := http.NewRequestWithContext(r.ctx, c.method, gateway.Ready["url"]+fill.Replace(c.path), strings.NewReader(fill.Replace(c.body)))
	if err == nil && c.body != "" {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", q.Key)
	}
	return request, err
}

// clients measures what the other protocols add to the gateway's own stream of events.
func clients(r *runner) error {
	gateway, err := r.StartGateway(r.ctx)
	if err != nil {
		return err
	}
	defer func() { _ = gateway.Stop() }()
	young := costs{}
	for i := range r.times(20) {
		if err := r.compare(gateway, r.context(fmt.Sprintf("clients-%d", i)), 5, young); err != nil {
			return err
		}
	}
	old, long := costs{}, r.context("clients-long")
	for i := range r.times(2000) {
		if _, err := long.turn(rig.Message{Key: fmt.Sprintf("%s-%d", long.name, i), Tokens: 1}); err != nil {
			return err
		}
	}
	if err := r.compare(gateway, long, 30, old); err != nil {
		return err
	}
	for _, p := range protocols {
		c := young[p.name]
		r.report.add(p.name+"_first_token_ms", "ms", c.first)
		r.report.add(p.name+"_first_token_added_ms", "ms", c.firstAdded)
		r.report.add(p.name+"_first_token_added_turn_2000_ms", "ms", old[p.name].firstAdded)
		r.report.add(p.name+"_delta_added_ms", "ms", c.deltaAdded)
	}
	return nil
}

// costs are those of the protocols, by name: from the request to the first token, and what it and each delta take longer
// than those of the gateway's own stream.
type costs map[string]*struct{ first, firstAdded, deltaAdded samples }

// compare takes turns in a context through each protocol, while a stream of the gateway's own follows the same answers.
// The first tokens of a round are those of different turns. The first round is not measured.
func (r *runner) compare(gateway *rig.Process, t *talker, rounds int, into costs) error {
	if !t.begun {
		if err := t.begin(); err != nil {
			return err
		}
	}
	request, err := protocols[0].join.request(r, gateway, question{context: t.name})
	if err != nil {
		return err
	}
	own, err := open(http.DefaultClient, request, time.Now())
	if err != nil {
		return err
	}
	defer own.Close()
	for round := range rounds + 1 {
		var base time.Duration // until the first token through the gateway's own protocol
		for i, p := range protocols {
			q := question{Message: message(fmt.Sprintf("%s-%d-%s", t.name, round, p.name)), context: t.name}
			began := time.Now()
			tokens, same, err := r.follow(gateway, p, q, own)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			first := tokens[0].seen.Sub(began)
			if i == 0 {
				base = first
			}
			if round == 0 {
				continue
			}
			c := into[p.name]
			if c == nil {
				c = &struct{ first, firstAdded, deltaAdded samples }{}
				into[p.name] = c
			}
			c.first.add(first)
			c.firstAdded.add(first - base)
			for i := range tokens {
				c.deltaAdded.add(tokens[i].seen.Sub(same[i].seen))
			}
		}
	}
	return nil
}

// follow asks through a protocol, and returns the tokens of its stream and the same ones of the gateway's own.
func (r *runner) follow(gateway *rig.Process, p protocol, q question, own *stream) (tokens, same []sighting, err error) {
	var reading errgroup.Group
	reading.Go(func() (err error) { same, err = own.answer(protocols[0].end); return err })
	request, err := p.ask.request(r, gateway, q)
	if err != nil {
		return nil, nil, err
	}
	if p == protocols[0] {
		if _, err := post(request); err != nil {
			return nil, nil, err
		}
		err := reading.Wait()
		return same, same, err
	}
	s, err := open(http.DefaultClient, request, time.Now())
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	if tokens, err = s.answer(p.end); err != nil {
		return nil, nil, err
	}
	if err := reading.Wait(); err != nil {
		return nil, nil, err
	}
	if len(tokens) != q.Tokens || len(same) != q.Tokens {
		return nil, nil, fmt.Errorf("%d tokens, and %d of the gateway's own stream, of %d", len(tokens), len(same), q.Tokens)
	}
	return tokens, same, nil
}

// post sends a message by the gateway's own protocol, and returns the counter of its event.
func post(request *http.Request) (counter int, err error) {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	var receipt struct{ EventIDs []string }
	if json.Unmarshal(body, &receipt) != nil || len(receipt.EventIDs) != 1 {
		return 0, fmt.Errorf("%s: %s", response.Status, body)
	}
	return event.Counter(receipt.EventIDs[0]), nil
}

// followers has a thousand streams of each protocol.
func followers(r *runner) error {
	gateway, err := r.StartGateway(r.ctx)
	if err != nil {
		return err
	}
	defer func() { _ = gateway.Stop() }()
	for _, p := range protocols {
		if err := r.crowded(gateway, p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// crowded has a thousand streams of a protocol follow 20 answers of 20 tokens per second.
func (r *runner) crowded(gateway *rig.Process, p protocol) error {
	questions := make([]question, 20)
	var asking errgroup.Group
	for i := range questions {
		q := &questions[i]
		q.context = fmt.Sprintf("crowded-%s-%d", p.name, i)
		q.Message = rig.Message{Key: q.context, Tokens: 500, Every: 50 * time.Millisecond}
		asking.Go(func() error {
			if err := r.context(q.context).begin(); err != nil || p.ask == p.join {
				return err
			}
			request, err := protocols[0].ask.request(r, gateway, *q)
			if err != nil {
				return err
			}
			if q.counter, err = post(request); err != nil {
				return err
			}
			_, err = r.await(rig.Requested, q.Key)
			return err
		})
	}
	began := time.Now()
	if err := asking.Wait(); err != nil {
		return err
	}
	streams, err := openAll(r.times(1000), func(i int) (*stream, error) {
		request, err := p.join.request(r, gateway, questions[i%len(questions)])
		if err != nil {
			return nil, err
		}
		return open(http.DefaultClient, request, began)
	})
	if err != nil {
		return err
	}
	defer closeAll(streams)
	before, err := rig.CPU(gateway.PID())
	if err != nil {
		return err
	}
	delays, err := readAll(streams, p.end, questions[0].Tokens)
	if err != nil {
		return err
	}
	after, err := rig.CPU(gateway.PID())
	used, _ := gateway.Memory()
	r.report.add(p.name+"_1000_delta_ms", "ms", delays)
	r.report.add(p.name+"_1000_cpu_per_delta_us", "us", samples{float64((after - before).Microseconds()) / float64(len(delays))})
	r.report.add(p.name+"_1000_gateway_rss_mb", "MB", samples{float64(used) / mb})
	return err
}
