package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

func newTokenCommand(a *app, gateway *pflag.FlagSet) *cobra.Command {
	command := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke tokens for the gateway",
		Long: `Make, list and revoke the tokens that "starter serve --auth tokens" accepts, as
"Authorization: Bearer TOKEN" and on its sign-in page. The file has a hash of each
token. A gateway applies changes at once.`,
		Example: `  starter token create --subject ann --role write --role approve
  starter token create --subject ci --tenant acme --role write --expires 720h
  starter token list
  starter token revoke k2x7abqd`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.PersistentFlags().AddFlag(gateway.Lookup("tokens"))
	command.AddCommand(newTokenCreateCommand(a), newTokenListCommand(a), newTokenRevokeCommand(a))
	return command
}

func (a *app) tokenFile() auth.TokenFile { return auth.TokenFile(a.gateway.Tokens) }

type tokenCreateOptions struct {
	*app
	subject, tenant string
	roles           []string
	expires         time.Duration
	json            bool
}

func newTokenCreateCommand(a *app) *cobra.Command {
	o := tokenCreateOptions{app: a}
	command := &cobra.Command{
		Use:   "create --subject NAME --role ROLE [flags]",
		Short: "Make a token and print it, once",
		Long: `Make a token and print it. It cannot be shown again. The role read reads contexts,
write also sends messages and stops answers, approve also decides on tool calls,
and admin may do everything.`,
		Example: `  starter token create --subject ann --role write --role approve
  starter token create --subject ci --tenant acme --role write --expires 720h`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return createToken(o) },
	}
	flags := command.Flags()
	flags.StringVar(&o.subject, "subject", "", "`NAME` of the person or program, as the audit log and approvals show it; required")
	flags.StringVar(&o.tenant, "tenant", "", "`TENANT` whose contexts the token reaches (default: the contexts without a tenant)")
	flags.StringArrayVar(&o.roles, "role", nil, "`ROLE`: read, write, approve or admin; may be repeated; required")
	flags.DurationVar(&o.expires, "expires", 0, "time until the token expires, at least 1s; 0: never")
	flags.BoolVar(&o.json, "json", false, "print the token and its record as one line of JSON")
	return command
}

type createdToken struct {
	Secret string `json:"token"`
	auth.Token
}

func createToken(o tokenCreateOptions) error {
	if o.subject == "" {
		return usagef("--subject: missing (want the name of a person or program)")
	}
	if len(o.roles) == 0 {
		return usagef("--role: missing (want read, write, approve or admin)")
	}
	roles, err := auth.ParseRoles(o.roles)
	if err != nil {
		return usagef("--role %w", err)
	}
	if o.expires != 0 && o.expires < time.Second {
		return usagef("--expires %s: want at least 1s, or 0 for never", o.expires)
	}
	identity := auth.Identity{Subject: o.subject, Tenant: o.tenant, Roles: roles}
	if err := identity.Validate(); err != nil {
		return usagef("%w", err)
	}
	token, record, err := o.tokenFile().Create(identity, o.expires)
	if err != nil {
		return err
	}
	if o.json {
		return o.printJSON(createdToken{token, record})
	}
	fmt.Fprintln(o.out, token)
	o.note("token %s of %s: %s; it is not shown again", record.ID, record.Subject, validity(record))
	return nil
}

func validity(record auth.Token) string {
	if record.Expires == nil {
		return "never expires"
	}
	verb := "expires"
	if record.IsExpired() {
		verb = "expired"
	}
	return verb + " " + record.Expires.Format(time.DateTime) + " UTC"
}

func newTokenListCommand(a *app) *cobra.Command {
	asJSON := false
	command := &cobra.Command{
		Use:   "list [--json]",
		Short: "List the tokens, without the tokens themselves",
		Long:  "List the tokens in the order of their creation. Times are in UTC.",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			tokens, err := a.tokenFile().List()
			if err != nil {
				return err
			}
			if asJSON {
				for _, token := range tokens {
					if err := a.printJSON(token); err != nil {
						return err
					}
				}
				return nil
			}
			return a.printTokens(tokens)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print each token as one line of JSON")
	return command
}

func (a *app) printTokens(tokens []auth.Token) error {
	if len(tokens) == 0 {
		a.note("no tokens in %s (make one with \"%s token create\")", a.tokenFile(), a.program())
		return nil
	}
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSUBJECT\tTENANT\tROLES\tCREATED\tVALIDITY")
	for _, token := range tokens {
		roles := make([]string, len(token.Roles))
		for i, role := range token.Roles {
			roles[i] = string(role)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", token.ID, terminal.Value(token.Subject), token.Tenant, strings.Join(roles, ","),
			token.Created.Format(time.DateTime), validity(token))
	}
	return table.Flush()
}

func newTokenRevokeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Revoke a token, its sessions and its open streams",
		Long:    `Revoke the token with an id of "starter token list". Open streams end within seconds.`,
		Example: "  starter token revoke k2x7abqd",
		Args:    oneArgument("ID"),
		RunE: func(_ *cobra.Command, args []string) error {
			err := a.tokenFile().Revoke(args[0])
			if errors.Is(err, auth.ErrNoToken) {
				return fmt.Errorf("revoke %w (list the tokens with \"%s token list\")", err, a.program())
			}
			if err == nil {
				a.note("token %s: revoked", args[0])
			}
			return err
		},
	}
}
