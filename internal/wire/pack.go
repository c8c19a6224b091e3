package wire

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Pack encodes a session as gzipped JSON, for speed rather than size: it runs in workflow tasks.
func Pack(session reducer.Session) ([]byte, error) {
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(session); err != nil {
		return nil, fmt.Errorf("pack the session of context %s: %w", session.ContextName, err)
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// Unpack decodes the output of [Pack].
func Unpack(packed []byte) (reducer.Session, error) {
	var session reducer.Session
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		var data []byte
		// Reading to the end verifies the checksum.
		if data, err = io.ReadAll(r); err == nil {
			err = json.Unmarshal(data, &session)
		}
	}
	if err != nil {
		return session, fmt.Errorf("unpack a session of %d bytes: %w", len(packed), err)
	}
	return session, nil
}
