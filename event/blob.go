package event

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strconv"
)

// ToolReadResult names the tool with which models read the rest of an abridged tool result.
const ToolReadResult = "read_result"

// StoredResultHeader begins the bytes of stored tool results, so that models read no other blob of a context by its
// reference.
const StoredResultHeader = "chronicle tool result 1\n"

// BlobPrefix begins references to the blob store.
const BlobPrefix = "sha256/"

// AbridgedNote stands in a tool result of size bytes for those from head to tail. The digits of a reference name
// the stored result; "": it was not stored.
func AbridgedNote(size, head, tail int, digits string) string {
	how := "they were not stored"
	if digits != "" {
		how = fmt.Sprintf("read them with the tool %s, ref %q and an offset", ToolReadResult, digits)
	}
	return fmt.Sprintf("\n\n[The result has %d bytes. Bytes %d to %d are left out: %s.]\n\n", size, head, tail, how)
}

var abridgedNote = regexp.MustCompile(`\n\n\[The result has (\d+) bytes\. Bytes (\d+) to (\d+) are left out: ` +
	`read them with the tool ` + ToolReadResult + `, ref "([0-9a-f]{64})" and an offset\.\]\n\n`)

// abridgedRef returns the reference in an abridged tool result; "" for another value. The note must stand where
// it says, so that a quoted one does not count.
func abridgedRef(value json.RawMessage) string {
	var text string
	if !bytes.Contains(value, []byte(ToolReadResult)) || json.Unmarshal(value, &text) != nil {
		return ""
	}
	for _, at := range abridgedNote.FindAllStringSubmatchIndex(text, -1) {
		number := func(group int) int {
			n, _ := strconv.Atoi(text[at[2*group]:at[2*group+1]]) // out of range: matches no offset
			return n
		}
		if number(2) == at[0] && number(1)-number(3) == len(text)-at[1] {
			return BlobPrefix + text[at[8]:at[9]]
		}
	}
	return ""
}

// BlobRef returns the reference of an event to bytes in the blob store, "sha256/…": those of an attachment, or the
// whole of an abridged tool result. It returns "" if there is none.
func (e Event) BlobRef() string {
	switch body := e.Body.(type) {
	case FileAttachment:
		if body.Source.IsRef() {
			return body.Source.Ref
		}
	case ToolResult:
		return abridgedRef(body.Value)
	}
	return ""
}

// Extra fields of exported events.
const (
	extraRef  = "blobRef" // of an attachment whose bytes replace this reference
	extraBlob = "blob"    // of a tool result: the stored bytes in base64
)

// WithBlob returns the event with the bytes that it refers to, for an export. ok is false if data are other bytes.
// [Event.TakeBlob] is the inverse.
func (e Event) WithBlob(data []byte) (with Event, ok bool) {
	ref := e.BlobRef()
	if ref == "" || RefOf(data) != ref || e.Extra[extraRef] != nil || e.Extra[extraBlob] != nil {
		return e, false
	}
	name, value := extraRef, any(ref)
	switch body := e.Body.(type) {
	case FileAttachment:
		body.Source = Source{Type: SourceBlob, Data: data}
		e.Body = body
	case ToolResult:
		if !bytes.HasPrefix(data, []byte(StoredResultHeader)) {
			return e, false
		}
		name, value = extraBlob, data
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return e, false
	}
	if e.Extra = maps.Clone(e.Extra); e.Extra == nil {
		e.Extra = map[string]json.RawMessage{}
	}
	e.Extra[name] = encoded
	return e, true
}

// TakeBlob returns an event as it was before [Event.WithBlob], and the bytes; nil for an event without bytes of a
// reference. The error is a [*FieldError] if the bytes are not those of the reference.
func (e Event) TakeBlob() (without Event, data []byte, err error) {
	name, ref, body := extraBlob, e.BlobRef(), e.Body
	switch b := e.Body.(type) {
	case FileAttachment:
		name, data = extraRef, b.Source.Data
		_ = json.Unmarshal(e.Extra[name], &ref)
		b.Source = Source{Type: SourceBlob, Ref: ref}
		body = b
	case ToolResult:
		_ = json.Unmarshal(e.Extra[name], &data)
	}
	if !blobRef.MatchString(ref) || len(data) == 0 {
		return e, nil, nil
	}
	if RefOf(data) != ref {
		return e, nil, &FieldError{Tag: e.Tag(), Field: name, Problem: "the bytes are not those of " + ref + " (the export is damaged)"}
	}
	e.Body, e.Extra = body, maps.Clone(e.Extra)
	if delete(e.Extra, name); len(e.Extra) == 0 {
		e.Extra = nil
	}
	return e, data, e.Validate()
}

// RefOf returns the reference of bytes.
func RefOf(data []byte) string {
	sum := sha256.Sum256(data)
	return BlobPrefix + hex.EncodeToString(sum[:])
}
