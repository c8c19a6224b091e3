package main

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

var attachUsage = fmt.Sprintf("`FILE|URL` that goes with the message; a file has at most %d MiB, and 1 MiB without a blob store, "+
	"an http or https URL is only referred to; may be repeated", event.MaxAttachmentBytes>>20)

// attachAll makes attachments of files and URLs, in order.
func attachAll(places []string) ([]event.Event, error) {
	var events []event.Event
	for _, place := range places {
		e, err := attach(place)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// attach makes an attachment of a file or an http or https URL.
func attach(place string) (event.Event, error) {
	if u, err := url.Parse(place); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		return attachURL(place, u)
	}
	return attachFile(place)
}

func attachURL(place string, u *url.URL) (event.Event, error) {
	body := event.FileAttachment{
		Source:    event.Source{Type: event.SourceURL, URL: place},
		MediaType: mime.TypeByExtension(path.Ext(u.Path)),
	}
	if body.MediaType == "" {
		body.MediaType = "application/octet-stream"
	}
	if name := path.Base(u.Path); name != "." && name != "/" {
		body.FileName = name
	}
	return input(body)
}

func attachFile(name string) (event.Event, error) {
	// Looked at first: to open a pipe is to wait for somebody who writes to it.
	info, err := os.Stat(name)
	if err != nil {
		return event.Event{}, usagef("attach: %w", err)
	}
	if !info.Mode().IsRegular() {
		return event.Event{}, usagef("attach %s: it is %s, only regular files can be attached", name, kindOf(info.Mode()))
	}
	file, err := os.Open(name)
	if err != nil {
		return event.Event{}, usagef("attach: %w", err)
	}
	defer file.Close()
	data, err := readAtMost(file, event.MaxAttachmentBytes)
	if err == nil && len(data) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return event.Event{}, usagef("attach %s: %w", name, err)
	}
	mediaType := mime.TypeByExtension(strings.ToLower(filepath.Ext(name)))
	if mediaType == "" {
		mediaType = http.DetectContentType(data)
	}
	return input(event.FileAttachment{
		Source:    event.Source{Type: event.SourceBlob, Data: data},
		MediaType: mediaType,
		FileName:  filepath.Base(name),
		Size:      int64(len(data)),
	})
}

// kindOf says what is no regular file.
func kindOf(mode os.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&os.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&os.ModeDevice != 0:
		return "a device"
	default:
		return "no file"
	}
}

// readAtMost reads to the end, which must come within limit bytes.
func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("more than the limit of %d bytes", limit)
	}
	return data, err
}
