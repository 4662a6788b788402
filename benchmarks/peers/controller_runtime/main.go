// The controller-runtime peer of the benchmark: each KubernetesObject owns the ConfigMap that its spec holds.
package main

import (
	"context"
	"flag"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	namespace := flag.String("watch-namespace", "", "the namespace of the custom resources")
	concurrency := flag.Int("concurrency", 20, "how many custom resources are reconciled at once")
	resync := flag.Duration("resync", 10*time.Hour, "the resync period of the caches")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	if err := run(*namespace, *concurrency, *resync); err != nil {
		ctrl.Log.Error(err, "controller failed")
		os.Exit(1)
	}
}

func run(namespace string, concurrency int, resync time.Duration) error {
	scheme := runtime.NewScheme()
	if err := addToScheme(scheme); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	// The API server limits requests; a client-side limit would be measured instead of the controller.
	config.QPS = -1
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}, SyncPeriod: &resync},
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&KubernetesObject{}).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(&reconciler{manager.GetClient(), scheme})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

type reconciler struct {
	client client.Client
	scheme *runtime.Scheme
}

// Reconcile creates or updates the ConfigMap, and writes the status if it changes. Reads are from the caches.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var resource KubernetesObject
	if err := r.client.Get(ctx, request.NamespacedName, &resource); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !resource.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if err := r.writeConfigMap(ctx, &resource); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.writeStatus(ctx, &resource)
}

func (r *reconciler) writeConfigMap(ctx context.Context, resource *KubernetesObject) error {
	manifest := &resource.Spec.Manifest
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: manifest.Name, Namespace: resource.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.client, configMap, func() error {
		configMap.Labels = manifest.Labels
		configMap.Data = manifest.Data
		return controllerutil.SetControllerReference(resource, configMap, r.scheme)
	})
	return err
}

func (r *reconciler) writeStatus(ctx context.Context, resource *KubernetesObject) error {
	before := resource.DeepCopyObject().(*KubernetesObject)
	resource.Status.ObservedGeneration = resource.Generation
	meta.SetStatusCondition(&resource.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "UpToDate", Message: "The object is as declared",
		ObservedGeneration: resource.Generation,
	})
	if equality.Semantic.DeepEqual(&before.Status, &resource.Status) {
		return nil
	}
	// The cache may not have the last status yet: an update would conflict, a patch repeats what is there.
	return r.client.Status().Patch(ctx, resource, client.MergeFrom(before))
}
