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

var attachUsage = fmt.Sprintf("`FILE|URL` to attach; files of at most %d MiB (1 MiB for types that models do not receive, 36 KiB without a blob store); "+
	"http and https URLs are sent as links; may be repeated", event.MaxAttachmentBytes>>20)

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
	// Opening a named pipe would block until another process writes to it.
	info, err := os.Stat(name)
	if err != nil {
		return event.Event{}, usagef("attach: %w", err)
	}
	if !info.Mode().IsRegular() {
		return event.Event{}, usagef("attach %s: is %s (want a regular file)", name, kindOf(info.Mode()))
	}
	file, err := os.Open(name)
	if err != nil {
		return event.Event{}, usagef("attach: %w", err)
	}
	defer file.Close()
	data, err := readAtMost(file, event.MaxAttachmentBytes)
	if err == nil && len(data) == 0 {
		err = errors.New("the file is empty")
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

func kindOf(mode os.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&os.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&os.ModeDevice != 0:
		return "a device"
	default:
		return "a special file"
	}
}

// More than limit bytes are an error.
func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("too large (at most %d bytes)", limit)
	}
	return data, err
}
