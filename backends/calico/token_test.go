package calico

import (
	"fmt"
	"testing"
)

// Promise 4. An address goes from one sandbox of a pod to the next, as a static address does.
// Whatever version of Calico wrote the two allocations, they have no token in common. One that
// has a number or the handle of a sandbox has a token.
func TestNoTwoSandboxesHaveTheSameToken(t *testing.T) {
	had := make(map[string]int) // the sandbox, by token
	for sandbox := range 2 {
		ofSandbox := fmt.Sprintf(`"k8s-pod-network.%064x"`, sandbox)
		for _, handle := range []string{`null`, `"default.web-0"`, ofSandbox} {
			for _, attributes := range []string{`null`, `{"namespace":"default","pod":"web-0","node":"node-1"}`} {
				for _, number := range []string{``, fmt.Sprintf(`,"sequenceNumberForAllocation":{"0":%d}`, sandbox)} {
					token := mustRead(t, shapes[1].stored(blocks, "10.0.0.0/32",
						`{"cidr":"10.0.0.0/32","allocations":[0],"unallocated":[],"attributes":[{"handle_id":`+
							handle+`,"secondary":`+attributes+`}]`+number+`}`)).token(0)
					if before, known := had[token]; token != "" && known && before != sandbox {
						t.Errorf("the two sandboxes have the same token with handle %s, attributes %s", handle, attributes)
					}
					if token == "" && (number != "" || handle == ofSandbox) {
						t.Errorf("no token with handle %s, attributes %s%s", handle, attributes, number)
					}
					had[token] = sandbox
				}
			}
		}
	}
}
