// Command trimaran holds a scheduler that knows load, and the load-watcher that it asks: the
// first argument names the program to be. One link step instead of two keeps the build short.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/paypal/load-watcher/pkg/watcher"
	"github.com/paypal/load-watcher/pkg/watcher/api"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme" // knows the plugins' arguments
	"sigs.k8s.io/scheduler-plugins/pkg/trimaran/loadvariationriskbalancing"
	"sigs.k8s.io/scheduler-plugins/pkg/trimaran/targetloadpacking"
)

const usage = "usage: trimaran kube-scheduler [flags] | load-watcher ADDRESS"

func main() {
	if len(os.Args) < 2 {
		fail(usage)
	}
	os.Args = os.Args[1:]
	switch os.Args[0] {
	case "kube-scheduler":
		os.Exit(cli.Run(app.NewSchedulerCommand(
			app.WithPlugin(targetloadpacking.Name, targetloadpacking.New),
			app.WithPlugin(loadvariationriskbalancing.Name, loadvariationriskbalancing.New),
		)))
	case "load-watcher":
		if len(os.Args) != 2 {
			fail(usage)
		}
		watch(os.Args[1])
	default:
		fail(usage)
	}
}

// watch serves what the provider measures that the environment names, until it is stopped.
//
// load-watcher itself serves on port 2020 of all addresses. That port is taken first, on loopback, so that
// it finds it in use; it says so and goes on, and its handlers are served on the given address.
func watch(address string) {
	if held, err := net.Listen("tcp", "127.0.0.1:2020"); err == nil {
		defer held.Close()
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		fail("load-watcher: " + err.Error())
	}
	if _, err := api.NewLibraryClient(watcher.EnvMetricProviderOpts); err != nil {
		fail("load-watcher: " + err.Error())
	}
	fail(http.Serve(listener, nil).Error())
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(2)
}
