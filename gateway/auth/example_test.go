package auth_test

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := auth.TokenFile(filepath.Join(dir, "tokens.jsonl"))
	token, _, err := file.Create(auth.Identity{Subject: "ann", Tenant: "acme", Roles: []auth.Role{auth.RoleWrite}}, 0)
	if err != nil {
		panic(err)
	}
	service, err := auth.New(auth.Options{Tokens: auth.OpenTokens(file, slog.Default())}) // for gateway.Options.Auth and SignIn
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest("GET", "/contexts", nil)
	_, err = service.Authenticate(r)
	fmt.Println(err)
	r.Header.Set("Authorization", "Bearer "+token)
	identity, err := service.Authenticate(r)
	fmt.Println(identity.Subject, identity.Tenant, identity.Roles, err)
	// Output:
	// unauthenticated: no credential
	// ann acme [write] <nil>
}
