// Command trimaran holds a scheduler that knows load, and the load-watcher that tells it: the
// first argument names the program to be. One link step instead of two keeps the build short.
package main

import (
	"fmt"
	"os"

	"github.com/paypal/load-watcher/pkg/watcher"
	"github.com/paypal/load-watcher/pkg/watcher/api"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme" // how the plugins' arguments are decoded
	"sigs.k8s.io/scheduler-plugins/pkg/trimaran/loadvariationriskbalancing"
	"sigs.k8s.io/scheduler-plugins/pkg/trimaran/targetloadpacking"
)

func main() {
	if len(os.Args) < 2 {
		fail("usage: trimaran kube-scheduler|load-watcher [flags]")
	}
	name := os.Args[1]
	os.Args = os.Args[1:]
	switch name {
	case "kube-scheduler":
		os.Exit(cli.Run(app.NewSchedulerCommand(
			app.WithPlugin(targetloadpacking.Name, targetloadpacking.New),
			app.WithPlugin(loadvariationriskbalancing.Name, loadvariationriskbalancing.New),
		)))
	case "load-watcher":
		watch()
	default:
		fail("unknown program " + name)
	}
}

// watch serves what the provider named in the environment measures, until it is stopped.
func watch() {
	if _, err := api.NewLibraryClient(watcher.EnvMetricProviderOpts); err != nil {
		fail("load-watcher: " + err.Error())
	}
	select {}
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(2)
}
