// Package auth authenticates requests to the gateway and signs people in on its page.
//
//	tokens := auth.OpenTokens("tokens.jsonl", log)
//	service, err := auth.New(auth.Options{Tokens: tokens})
//	g := gateway.New(c, gateway.Options{Auth: service, SignIn: service})
//
// # Credentials
//
// A request is identified by the first of these that it has; an invalid one is not made up for by the next:
//
//   - Authorization: Bearer, with the credential of a share link ([Service.Share])
//   - the headers of a trusted proxy, which knows a secret ([Proxy])
//   - Authorization: Bearer, with a static token ([Tokens]) or a JWT of an OpenID Connect provider ([OIDC])
//   - the cookie of a session, for people who signed in on the page
//
// # Sessions
//
// People sign in with a token, or at the provider by the authorization code flow with PKCE. The session is a cookie that
// the gateway encrypts and authenticates, so gateways with the same [Options.SessionKey] accept the sessions of each
// other and store none. Scripts cannot read the cookie, other sites cannot use it, and it ends after [SessionLifetime].
// A session begun with a token ends with the token. Other sessions cannot be revoked one by one: replace the key.
//
// # Share links
//
// A link is a credential, sealed with the same key, that reads one context. It is not stored either, and ends like a session,
// after a time that its maker chose.
package auth
