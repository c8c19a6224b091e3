package wire

import (
	"bytes"
	"encoding/json"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// JSON encodes a json/plain payload without escaping "<", ">" and "&" to six bytes each.
func JSON(value any) (converter.RawValue, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return converter.RawValue{}, err
	}
	return Payload(bytes.TrimSuffix(buf.Bytes(), []byte("\n"))), nil
}

// Payload returns a json/plain payload of encoded JSON.
func Payload(data []byte) converter.RawValue {
	return converter.NewRawValue(&commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)},
		Data:     data,
	})
}
