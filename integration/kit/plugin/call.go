package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"time"
)

// commandTimeout ends a plugin that hangs. Whereabouts' own limit for an ADD is two minutes, of
// which ten seconds are for the stores.
const commandTimeout = 2*time.Minute + 10*time.Second

// An Error is a failure that the plugin reported.
type Error struct {
	Command string // ADD or DEL
	Pod     Pod
	Code    int    `json:"code"` // as CNI defines it
	Msg     string `json:"msg"`
	Details string `json:"details"`
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s/%s: %s", e.Command, e.Pod.Namespace, e.Pod.Name, e.Says())
}

// Says returns the failure as libcni passes it on.
func (e *Error) Says() string {
	if e.Details != "" {
		return e.Msg + "; " + e.Details
	}
	return e.Msg
}

// A Call is a call of any CNI plugin that manages addresses.
type Call struct {
	Binary      string
	Pod         Pod
	ContainerID string
	Interface   string
	Args        []string // more CNI arguments, as KEY=value
	Env         []string // more environment variables, as KEY=value
	Config      []byte   // what the plugin reads on its standard input
}

// Add asks for addresses. A failure that the plugin reports is an *Error.
func (c Call) Add(ctx context.Context) ([]netip.Addr, error) {
	out, err := c.run(ctx, "ADD")
	if err != nil {
		return nil, err
	}
	var result struct {
		IPs []struct {
			Address netip.Prefix `json:"address"`
		} `json:"ips"`
	}
	if err := json.Unmarshal(out, &result); err != nil {
		return nil, fmt.Errorf("ADD %s/%s: decode result: %w", c.Pod.Namespace, c.Pod.Name, err)
	}
	var addrs []netip.Addr
	for _, ip := range result.IPs {
		addrs = append(addrs, ip.Address.Addr())
	}
	return addrs, nil
}

// Del gives addresses back. A failure that the plugin reports is an *Error.
func (c Call) Del(ctx context.Context) error {
	_, err := c.run(ctx, "DEL")
	return err
}

func (c Call) run(ctx context.Context, command string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	args := fmt.Sprintf("IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;K8S_POD_INFRA_CONTAINER_ID=%s",
		c.Pod.Namespace, c.Pod.Name, c.ContainerID)
	for _, arg := range c.Args {
		args += ";" + arg
	}
	cmd := exec.CommandContext(ctx, c.Binary)
	cmd.Env = append([]string{
		"CNI_COMMAND=" + command,
		"CNI_CONTAINERID=" + c.ContainerID,
		"CNI_NETNS=/var/run/netns/none", // any but our own; it is not entered
		"CNI_IFNAME=" + c.Interface,
		"CNI_PATH=" + filepath.Dir(c.Binary),
		"CNI_ARGS=" + args,
	}, c.Env...)
	cmd.Stdin = bytes.NewReader(c.Config)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", command, c.Pod.Namespace, c.Pod.Name, ctx.Err())
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		answer := &Error{Command: command, Pod: c.Pod}
		if json.Unmarshal(out, answer) == nil && answer.Msg != "" {
			return nil, answer
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w: %s", command, c.Pod.Namespace, c.Pod.Name, err, stderr.Bytes())
	}
	return out, nil
}
