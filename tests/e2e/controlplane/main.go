// Command controlplane holds a Kubernetes control plane in one executable: the first
// argument names the program to be. One link step instead of five keeps the build short.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// programs maps a program's name to its command; etcd is apart, as it is no cobra command.
var programs = map[string]func() *cobra.Command{
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
}

func main() {
	if len(os.Args) < 2 {
		fail("usage: controlplane etcd|kubectl|kube-apiserver|kube-controller-manager|kube-scheduler [flags]")
	}
	name := os.Args[1]
	if name == "etcd" {
		etcdmain.Main(os.Args[1:])
		return
	}
	program, known := programs[name]
	if !known {
		fail("unknown program " + name)
	}
	os.Args = os.Args[1:]
	os.Exit(cli.Run(program()))
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(2)
}
