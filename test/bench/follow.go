package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

// stream reads server-sent events with the answers of the scripted model. It does not decode them, which keeps the CPU
// use of a thousand streams low.
type stream struct {
	io.Closer
	lines  *bufio.Reader
	newest time.Time // when the newest token was written
	opened time.Time
}

// sighting is when a token was written, and when a client saw it.
type sighting struct{ written, seen time.Time }

// open returns a stream of the tokens written after a time.
func open(browser *http.Client, request *http.Request, after time.Time) (*stream, error) {
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Accept-Encoding", "identity")
	response, err := browser.Do(request)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewReader(response.Body)
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(lines)
		_ = response.Body.Close()
		return nil, fmt.Errorf("%s %s: %s: %s", request.Method, request.URL, response.Status, body)
	}
	return &stream{response.Body, lines, after, time.Now()}, nil
}

// answer returns the tokens up to an event that contains end.
func (s *stream) answer(end string) (tokens []sighting, err error) {
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return tokens, fmt.Errorf("after %d tokens: %w", len(tokens), err)
		}
		now := time.Now()
		data, isData := strings.CutPrefix(line, "data: ")
		if !isData {
			continue
		}
		// Some events repeat the tokens, or the whole answer.
		for word := range strings.FieldsFuncSeq(data, func(r rune) bool { return r == ' ' || r == '"' }) {
			if len(word) != rig.StampBytes {
				continue
			}
			if at, ok := rig.WrittenAt(word); ok && at.After(s.newest) {
				tokens, s.newest = append(tokens, sighting{at, now}), at
			}
		}
		if len(tokens) > 0 && strings.Contains(data, end) {
			return tokens, nil
		}
	}
}

// openAll opens n streams, 50 at a time.
func openAll(n int, open func(i int) (*stream, error)) (streams []*stream, err error) {
	streams = make([]*stream, n)
	var opening errgroup.Group
	opening.SetLimit(50)
	for i := range streams {
		opening.Go(func() (err error) { streams[i], err = open(i); return err })
	}
	if err := opening.Wait(); err != nil {
		closeAll(streams)
		return nil, err
	}
	return streams, nil
}

func closeAll(streams []*stream) {
	for _, s := range streams {
		if s != nil {
			_ = s.Close()
		}
	}
}

// readAll returns the delays of the tokens of an answer that were written after all streams were open. It fails if a
// stream lacks a token.
func readAll(streams []*stream, end string, tokens int) (delays samples, err error) {
	opened := slices.MaxFunc(streams, func(a, b *stream) int { return a.opened.Compare(b.opened) }).opened
	var reading errgroup.Group
	var mu sync.Mutex
	for _, s := range streams {
		reading.Go(func() error {
			all, err := s.answer(end)
			if err == nil && len(all) < tokens { // an attempt that started over has more
				err = fmt.Errorf("a client saw %d tokens of %d", len(all), tokens)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, one := range all {
				if one.written.After(opened) {
					delays.add(one.seen.Sub(one.written))
				}
			}
			return err
		})
	}
	if err := reading.Wait(); err != nil {
		return nil, err
	}
	if len(delays) == 0 {
		return nil, errors.New("the answer ended before all streams were open")
	}
	return delays, nil
}
