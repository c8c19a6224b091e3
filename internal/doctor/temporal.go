package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
	"github.com/seed-9ed7edd4/chronicle/internal/version"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

const checkCredentials = "check the credentials (TEMPORAL_API_KEY, TEMPORAL_TLS_* or the TOML profile) and their permissions"

// minRetention is three days, the default of the temporal command.
const minRetention = 72 * time.Hour

func (d *Deployment) connection(ctx context.Context) Result {
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
	d.temporal = c
	took := time.Since(began)
	info, err := c.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return failed("get system info", err)
	}
	measured := fmt.Sprintf("%s responds in %v; server %s, Go SDK %s, Chronicle %s", d.Address, latency(took), info.GetServerVersion(), temporal.SDKVersion, version.Build())
	server, err := devserver.ParseVersion("(Server " + info.GetServerVersion())
	if err == nil && !server.Fine() {
		return warning(fmt.Sprintf("use a server of version %v or later, below 2", devserver.MinVersion), "%s", measured)
	}
	return ok("%s", measured) // a version in another format, like that of Temporal Cloud, is not compared
}

func (d *Deployment) namespace(ctx context.Context) Result {
	described, err := d.temporal.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: d.Namespace})
	switch {
	case errors.As(err, new(*serviceerror.NamespaceNotFound)), errors.As(err, new(*serviceerror.NotFound)):
		return failure(fmt.Sprintf("set --namespace or TEMPORAL_NAMESPACE, or create it: temporal operator namespace create -n %s --retention 720h", d.Namespace),
			"namespace %q does not exist", d.Namespace)
	case err != nil:
		return failed(fmt.Sprintf("describe namespace %q", d.Namespace), err)
	}
	d.storeID = described.GetNamespaceInfo().GetData()[wire.MemoStore]
	retention := described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	if retention < minRetention {
		return warning(fmt.Sprintf("temporal operator namespace update -n %s --retention 720h", d.Namespace),
			"%q keeps closed runs for %v, less than %v", d.Namespace, retention, minRetention)
	}
	return ok("%q exists and keeps closed runs for %d days", d.Namespace, int(retention.Hours()/24))
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
