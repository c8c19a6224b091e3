package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html/charset"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/egress"
	"github.com/seed-9ed7edd4/chronicle/internal/version"
	"github.com/seed-9ed7edd4/chronicle/tool"
)

const (
	fetchTimeout    = 30 * time.Second // of a fetch with its redirects
	maxBodyBytes    = 2 << 20          // read from a body
	maxFailureBytes = 500              // of a failed response for the model
)

// FetchOptions configure [Fetch].
type FetchOptions struct {
	// Client sends the requests. Nil: a client that connects only to public addresses, on ports 80
	// and 443, without a proxy. With any other client, models reach every address that it reaches.
	Client *http.Client
}

type fetchInput struct {
	URL string `json:"url" jsonschema:"an http or https URL"`
	Raw bool   `json:"raw,omitempty" jsonschema:"return HTML as it is instead of as Markdown"`
}

// Fetch returns the tool fetch, which gets a URL and returns at most 2 MiB of its text, HTML as
// Markdown. Other content is an error.
func Fetch(options FetchOptions) tool.Tool {
	f := fetcher{client: options.Client, markdown: converter.NewConverter(converter.WithPlugins(
		base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))}
	if f.client == nil {
		f.client = egress.NewClient(egress.Options{})
	}
	return tool.Must(tool.New("fetch", "Fetch a URL of the public Internet and return its text; HTML is returned as Markdown.",
		f.fetch, tool.Idempotent(), tool.Attempts(2), tool.Timeout(fetchTimeout)))
}

type fetcher struct {
	client   *http.Client
	markdown *converter.Converter
}

func (f fetcher) fetch(ctx context.Context, in fetchInput) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, in.URL, nil)
	if err != nil {
		return "", errors.New("url: invalid (want an http or https URL)")
	}
	request.Header.Set("User-Agent", "Chronicle/"+version.Version)
	request.Header.Set("Accept", "text/html, text/markdown, text/plain, application/json, application/xml;q=0.9, */*;q=0.5")
	response, err := f.client.Do(request)
	if err != nil {
		return "", unreachable(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes+1))
	if err != nil {
		return "", tool.Retryable(fmt.Errorf("read the body: %w", err))
	}
	isCut := len(body) > maxBodyBytes
	text, err := f.text(response, body[:min(len(body), maxBodyBytes)], in.Raw)
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return "", statusError(response, text)
	}
	if err != nil {
		return "", err
	}
	if isCut {
		text += fmt.Sprintf("\n\n[the body is longer than %d bytes; the rest was not read]", maxBodyBytes)
	}
	if final := response.Request.URL.String(); final != request.URL.String() {
		text = "[redirected to " + final + "]\n\n" + text
	}
	return text, nil
}

func unreachable(err error) error {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		err = failed.Err // without the URL, which the model knows
	}
	if errors.Is(err, egress.ErrBlocked) {
		return err
	}
	if failed := (*net.DNSError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("host %s: %s", failed.Name, failed.Err) // without the address of the name server
		if failed.IsNotFound {
			return err
		}
	}
	return tool.Retryable(err)
}

func statusError(response *http.Response, text string) error {
	err := fmt.Errorf("status %s: %s", response.Status, event.RedactOutput(strings.TrimSpace(text), maxFailureBytes))
	if response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= 500 {
		return tool.Retryable(err)
	}
	return err
}

func (f fetcher) text(response *http.Response, body []byte, isRaw bool) (string, error) {
	contentType := response.Header.Get("Content-Type")
	if contentType == "" {
		contentType = http.DetectContentType(body)
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		mediaType = event.BareMediaType(contentType)
	}
	isHTML := mediaType == "text/html" || mediaType == "application/xhtml+xml"
	if event.MediaOf(mediaType) != event.MediaText {
		return "", fmt.Errorf("the content type %q is not text", mediaType)
	}
	text, err := decode(body, contentType, isHTML)
	if err != nil || !isHTML || isRaw {
		return text, err
	}
	markdown, err := f.markdown.ConvertString(text, converter.WithDomain(response.Request.URL.String()))
	if err != nil {
		return text, nil // such as HTML that is nested too deep
	}
	return dataImage.ReplaceAllString(markdown, "![$1]()"), nil
}

var dataImage = regexp.MustCompile(`!\[([^\]]*)\]\(data:[^)]*\)`) // an image whose bytes are in its URL

// decode returns text in UTF-8. HTML may declare its encoding itself.
func decode(body []byte, contentType string, isHTML bool) (string, error) {
	if bytes.IndexByte(body, 0) >= 0 && !isUTF16(body) {
		return "", errors.New("the body is not text")
	}
	if !isHTML && !strings.Contains(strings.ToLower(contentType), "charset") && utf8.Valid(body) {
		return strings.TrimPrefix(string(body), "\ufeff"), nil
	}
	reader, err := charset.NewReader(bytes.NewReader(body), contentType)
	if err != nil {
		return string(body), nil
	}
	decoded, err := io.ReadAll(reader)
	return strings.TrimPrefix(string(decoded), "\ufeff"), err
}

func isUTF16(body []byte) bool {
	return bytes.HasPrefix(body, []byte{0xFE, 0xFF}) || bytes.HasPrefix(body, []byte{0xFF, 0xFE})
}
