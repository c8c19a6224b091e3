package devserver

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Retention of closed workflows: ten years. Most runs of a context are closed.
const Retention = 10 * 365 * 24 * time.Hour

// prepareNamespace waits for the namespace and sets its retention. It uses the gRPC API
// directly because the SDK client has its own retry schedule.
func prepareNamespace(ctx context.Context, address, name string) error {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect to temporal: %w", err)
	}
	defer connection.Close()
	service := workflowservice.NewWorkflowServiceClient(connection)
	return retry(ctx, func() error {
		// Reconnect now instead of after the gRPC backoff.
		connection.ResetConnectBackoff()
		described, err := service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
		if err != nil {
			return fmt.Errorf("describe namespace %q: %w", name, err)
		}
		if described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration() >= Retention {
			return nil
		}
		_, err = service.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
			Namespace: name,
			Config:    &namespace.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(Retention)},
		})
		if err != nil {
			return fmt.Errorf("set retention of namespace %q: %w", name, err)
		}
		return nil
	})
}
