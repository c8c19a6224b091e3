package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/attributes"
	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
	"github.com/seed-9ed7edd4/chronicle/internal/version"
)

// Names of checks that others need, or that callers handle.
const (
	CheckConnection = "temporal.connection"
	checkNamespace  = "temporal.namespace"
	checkHop        = "temporal.hop"
	checkPolling    = "workers.polling"
	checkAccess     = "store.access"
)

const checkCredentials = "check the credentials (TEMPORAL_API_KEY, TEMPORAL_TLS_* or the TOML profile) and their permissions"

// minRetention is three days, the default of the temporal command.
const minRetention = 72 * time.Hour

func (d *Deployment) connection() Check {
	return Check{
		Name: CheckConnection,
		Why:  "contexts are workflows of Temporal: nothing works without it",
		Run: func(ctx context.Context) Result {
			began := time.Now()
			c, err := d.Dial(ctx)
			switch {
			case err != nil && isDenied(err):
				return failure(checkCredentials, "%s denies access: %s", d.Address, text(err))
			case err != nil:
				r := failure("start Temporal, or set --address or TEMPORAL_ADDRESS", "%s does not respond: %s", d.Address, text(err))
				r.isUnreachable = true
				return r
			}
			d.setClient(c)
			return ok("%s responds in %v", d.Address, latency(time.Since(began)))
		},
	}
}

func (d *Deployment) version() Check {
	return Check{
		Name:  "temporal.version",
		Why:   "older servers lack features that contexts use",
		Needs: []string{CheckConnection},
		Run: func(ctx context.Context) Result {
			info, err := d.client().WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
			if err != nil {
				return failed("get system info", err)
			}
			measured := fmt.Sprintf("server %s, Go SDK %s, Chronicle %s", info.GetServerVersion(), temporal.SDKVersion, version.Build())
			server, err := devserver.ParseVersion("(Server " + info.GetServerVersion())
			if err == nil && !server.Fine() {
				return warning(fmt.Sprintf("use a server of version %v or later, below 2", devserver.MinVersion), "%s", measured)
			}
			return ok("%s", measured) // a version in another format, like that of Temporal Cloud, is not compared
		},
	}
}

func (d *Deployment) namespace() Check {
	return Check{
		Name:  checkNamespace,
		Why:   "all contexts are in one namespace",
		Needs: []string{CheckConnection},
		Run: func(ctx context.Context) Result {
			described, err := d.client().WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: d.Namespace})
			switch {
			case errors.As(err, new(*serviceerror.NamespaceNotFound)), errors.As(err, new(*serviceerror.NotFound)):
				return failure(fmt.Sprintf("set --namespace or TEMPORAL_NAMESPACE, or create it: temporal operator namespace create -n %s --retention 720h", d.Namespace),
					"namespace %q does not exist", d.Namespace)
			case err != nil:
				return failed(fmt.Sprintf("describe namespace %q", d.Namespace), err)
			}
			d.described = described
			return ok("%q exists", d.Namespace)
		},
	}
}

func (d *Deployment) retention() Check {
	return Check{
		Name: "temporal.retention",
		Why: "the events of a terminated run are archived when its context receives the next input; if the server deletes the run before, they " +
			"are lost",
		Needs: []string{checkNamespace},
		Run: func(context.Context) Result {
			got := d.described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
			if got < minRetention {
				return warning(fmt.Sprintf("temporal operator namespace update -n %s --retention 720h", d.Namespace),
					"closed runs are kept for %v, less than %v", got, minRetention)
			}
			return ok("closed runs are kept for %d days", int(got.Hours()/24))
		},
	}
}

func (d *Deployment) attributes() Check {
	return Check{
		Name:  "temporal.attributes",
		Why:   "without search attributes, lists of contexts show no status, turns or model",
		Needs: []string{checkNamespace},
		Run: func(ctx context.Context) Result {
			missing, err := attributes.Missing(ctx, d.client().OperatorService(), d.Namespace)
			switch {
			case errors.Is(err, attributes.ErrType):
				return failure(fmt.Sprintf("remove the attribute, and restart the workers, which register it with the right type: "+
					"temporal operator search-attribute remove -n %s --name NAME", d.Namespace), "%s", text(err))
			case errors.As(err, new(*serviceerror.PermissionDenied)), errors.As(err, new(*serviceerror.Unimplemented)):
				return skipped("the server does not list search attributes: %s", text(err))
			case err != nil:
				return failed("list search attributes", err)
			case len(missing) > 0:
				return warning("start a worker, which registers them, or: "+attributes.Command(d.Namespace),
					"not registered: %s", strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
			}
			return ok("%s are registered", strings.Join(slices.Sorted(maps.Keys(attributes.Types)), ", "))
		},
	}
}

// failed returns the result for an unexpected error of Temporal.
func failed(operation string, err error) Result {
	fix := "see the log of the Temporal server"
	if isDenied(err) {
		fix = checkCredentials
	}
	return failure(fix, "%s: %s", operation, text(err))
}

func text(err error) string { return event.RedactOutput(err.Error(), 500) }

func isDenied(err error) bool {
	code := status.Code(err)
	return errors.As(err, new(*serviceerror.PermissionDenied)) || code == codes.Unauthenticated || code == codes.PermissionDenied
}
