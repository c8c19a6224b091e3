package stream

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
)

// Auth configures how a client and a NATS server authenticate each other. The zero value uses only
// the URL, with its user and password or token, and the CA certificates of the system. Secrets are
// in files or in the environment, never on a command line.
type Auth struct {
	User, Password, PasswordFile string // password: in Password, or the first line of PasswordFile
	Token, TokenFile             string // token: in Token, or the first line of TokenFile
	CredsFile                    string // a JWT and an nkey seed
	NKeyFile                     string // an nkey seed
	CAFile                       string // CA certificates in PEM; requires TLS; empty: those of the system
	CertFile, KeyFile            string // client's certificate and key in PEM; require TLS
}

// AuthSetting is a field of an [Auth]. Passwords and tokens themselves have no flag.
type AuthSetting struct {
	Flag, Env, Usage string
	Value            *string
}

// DevToken is the file with the token of the NATS server of worker --dev, in its data directory.
const DevToken = "nats.token"

// Settings returns the fields that flags and variables set. The nats command has the same variables, except for
// those of files.
func (a *Auth) Settings() []AuthSetting {
	return []AuthSetting{
		{"nats-user", "NATS_USER", "`NAME` of the NATS user", &a.User},
		{"nats-password-file", "NATS_PASSWORD_FILE", "`FILE` with the password of the NATS user", &a.PasswordFile},
		{"nats-token-file", "NATS_TOKEN_FILE", "`FILE` with a NATS token; without any authentication, .chronicle/" + DevToken + " if it exists and NATS is on this machine", &a.TokenFile},
		{"nats-creds", "NATS_CREDS", "`FILE` with NATS credentials, a JWT and an nkey seed", &a.CredsFile},
		{"nats-nkey", "NATS_NKEY", "`FILE` with the nkey seed of the NATS user", &a.NKeyFile},
		{"nats-ca", "NATS_CA", "PEM `FILE` with the CA certificates of the NATS server; requires TLS", &a.CAFile},
		{"nats-cert", "NATS_CERT", "PEM `FILE` with the client certificate for NATS; requires TLS", &a.CertFile},
		{"nats-key", "NATS_KEY", "PEM `FILE` with the private key of the client certificate for NATS", &a.KeyFile},
	}
}

// WithEnv sets empty fields from the environment. If one method of authentication is set, it adds
// no other, except for the password of the user.
func (a Auth) WithEnv(getenv func(string) string) Auth {
	chosen := a.IsSet()
	for _, s := range a.Settings() {
		isTLS := s.Value == &a.CAFile || s.Value == &a.CertFile || s.Value == &a.KeyFile
		if s.Env != "" && *s.Value == "" && (isTLS || !chosen) {
			*s.Value = getenv(s.Env)
		}
	}
	if !chosen {
		a.Token = getenv("NATS_TOKEN")
	}
	if a.User != "" && a.Password == "" && a.PasswordFile == "" {
		a.Password, a.PasswordFile = getenv("NATS_PASSWORD"), getenv("NATS_PASSWORD_FILE")
	}
	return a
}

// IsSet reports whether a method of authentication is set. TLS is none.
func (a Auth) IsSet() bool {
	return a.User+a.Password+a.PasswordFile+a.Token+a.TokenFile+a.CredsFile+a.NKeyFile != ""
}

// refused explains an authorization error of the server.
func (a Auth) refused(urls string, err error) error {
	what := "the server requires authentication"
	switch {
	case a.TokenFile != "":
		what = "the server refuses the token in " + a.TokenFile
	case a.PasswordFile != "":
		what = fmt.Sprintf("the server refuses user %s with the password in %s", a.User, a.PasswordFile)
	case a.IsSet() || hasUser(urls):
		what = "the server refuses the credentials"
	}
	return fmt.Errorf("%w: %s (for worker --dev, set NATS_TOKEN_FILE or --nats-token-file to %s in its data directory; "+
		"for docker-compose.yml, set NATS_USER and NATS_PASSWORD)", err, what, DevToken)
}

// options reads passwords, tokens and certificates; each attempt to connect reads CredsFile and
// NKeyFile again.
func (a Auth) options(urls string) ([]nats.Option, error) {
	methods := 0
	for _, isSet := range []bool{
		a.User != "" || a.Password != "" || a.PasswordFile != "", a.Token != "" || a.TokenFile != "",
		a.CredsFile != "", a.NKeyFile != "", hasUser(urls),
	} {
		if isSet {
			methods++
		}
	}
	switch {
	case methods > 1:
		return nil, errors.New("more than one authentication method (want one of a user in the URL, --nats-user, --nats-token-file, --nats-creds and --nats-nkey, or their variables)")
	case (a.Password != "" || a.PasswordFile != "") && a.User == "":
		return nil, errors.New("a password without a user (set --nats-user or NATS_USER)")
	case a.User != "" && a.Password == "" && a.PasswordFile == "":
		return nil, errors.New("a user without a password (set --nats-password-file or NATS_PASSWORD)")
	case (a.CertFile == "") != (a.KeyFile == ""):
		return nil, errors.New("--nats-cert and --nats-key (or NATS_CERT and NATS_KEY) require each other")
	}
	var options []nats.Option
	switch {
	case a.User != "":
		password, err := secret(a.Password, a.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("password file: %w", err)
		}
		// A server can keep users from the responses to others.
		options = append(options, nats.UserInfo(a.User, password), nats.CustomInboxPrefix(nats.InboxPrefix+token(a.User)))
	case a.Token != "" || a.TokenFile != "":
		token, err := secret(a.Token, a.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("token file: %w", err)
		}
		options = append(options, nats.Token(token))
	case a.CredsFile != "":
		if _, err := os.Stat(a.CredsFile); err != nil {
			return nil, fmt.Errorf("credentials file: %w", err)
		}
		options = append(options, nats.UserCredentials(a.CredsFile))
	case a.NKeyFile != "":
		file, err := os.Open(a.NKeyFile)
		if err != nil {
			return nil, fmt.Errorf("nkey file: %w", err)
		}
		_ = file.Close()
		option, err := nats.NkeyOptionFromSeed(a.NKeyFile)
		if err != nil {
			return nil, fmt.Errorf("nkey file %s: not a valid user seed", a.NKeyFile)
		}
		options = append(options, option)
	}
	if a.CAFile != "" {
		if _, err := os.ReadFile(a.CAFile); err != nil {
			return nil, fmt.Errorf("CA file: %w", err)
		}
		options = append(options, nats.RootCAs(a.CAFile))
	}
	if a.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile); err != nil {
			return nil, fmt.Errorf("certificate %s with key %s: %w", a.CertFile, a.KeyFile, err)
		}
		options = append(options, nats.ClientCert(a.CertFile, a.KeyFile))
	}
	return options, nil
}

func secret(value, file string) (string, error) {
	if file == "" {
		return value, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(data), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", fmt.Errorf("%s is empty", file)
	}
	return line, nil
}

func hasUser(urls string) bool { return strings.Contains(urls, "@") }

// checkURLs omits the error of the parser, which repeats parts of the URL, possibly a password.
func checkURLs(urls string) error {
	for server := range strings.SplitSeq(urls, ",") {
		server = strings.TrimSpace(server)
		if !strings.Contains(server, "://") {
			server = "nats://" + server
		}
		if u, err := url.Parse(server); err != nil || u.Hostname() == "" {
			return errors.New("invalid URL (want a URL like nats://127.0.0.1:4222 or tls://host:4222, with percent-encoding of special characters in passwords)")
		}
	}
	return nil
}

// RedactURL removes users, passwords and tokens from comma-separated NATS URLs, even malformed
// ones.
func RedactURL(urls string) string {
	if !hasUser(urls) {
		return urls
	}
	servers := strings.Split(urls, ",")
	// A comma in a password splits it, so everything before the last @ is removed.
	last := len(servers) - 1
	for !hasUser(servers[last]) {
		last--
	}
	_, host, _ := strings.Cut(servers[last], "@")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	scheme, _, found := strings.Cut(servers[0], "://")
	if !found || strings.ContainsAny(scheme, ":@/") {
		scheme = "nats"
	}
	shown := scheme + "://[removed]@" + strings.TrimSpace(host)
	return strings.Join(append([]string{shown}, servers[last+1:]...), ",")
}
