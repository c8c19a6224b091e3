package gateway

import (
	"errors"
	"net/http"
	"time"

	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

// SignIn signs people in, see [auth.Service.Serve].
type SignIn interface {
	Serve(w http.ResponseWriter, r *http.Request) (auth.Identity, error)
	// Share is [auth.Service.Share].
	Share(r *http.Request, by auth.Identity, what auth.Shared, lifetime time.Duration) (auth.Link, error)
}

// readSession tells who sends the request, and the ways to sign in here.
func (g *Gateway) readSession(w http.ResponseWriter, r *http.Request) error {
	_, err := g.options.SignIn.Serve(w, r)
	return signInProblem(err)
}

// signIn begins a session with a token. Its cookie identifies later requests.
func (g *Gateway) signIn(w http.ResponseWriter, r *http.Request) error {
	identity, err := g.options.SignIn.Serve(w, r)
	g.audit(w, r, "signIn", identity)
	if errors.Is(err, auth.ErrNotFound) {
		return signInProblem(err)
	}
	if err != nil {
		return g.credentialProblem(w, r, err)
	}
	return nil
}

// signOut ends the session in this browser.
func (g *Gateway) signOut(w http.ResponseWriter, r *http.Request) error {
	identity, err := g.options.SignIn.Serve(w, r)
	if identity.Subject != "" {
		g.audit(w, r, "signOut", identity)
	}
	return signInProblem(err)
}

// startSignIn leads a browser to the provider.
func (g *Gateway) startSignIn(w http.ResponseWriter, r *http.Request) error {
	_, err := g.options.SignIn.Serve(w, r)
	return signInProblem(err)
}

// finishSignIn begins the session of a browser that returns from the provider. It leads to the page, which shows a failure.
func (g *Gateway) finishSignIn(w http.ResponseWriter, r *http.Request) error {
	identity, err := g.options.SignIn.Serve(w, r)
	if err == nil {
		g.audit(w, r, "signIn", identity)
	}
	return signInProblem(err)
}

func signInProblem(err error) error {
	if errors.Is(err, auth.ErrNotFound) {
		return problem(problemNotFound, http.StatusNotFound, "Not found", "nobody signs in here in this way; GET /auth/session lists the ways")
	}
	return err
}
