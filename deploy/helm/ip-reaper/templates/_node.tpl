{{/*
The name of the DaemonSet's namespace, in which there is nothing else. Such a name has no dot.
*/}}
{{- define "ip-reaper.nodeNamespace" -}}
{{- printf "%s-node" (include "ip-reaper.fullname" .) | replace "." "-" -}}
{{- end }}

{{/*
The policy of the DaemonSet.
*/}}
{{- define "ip-reaper.nodePolicy" -}}
{{- $policy := dict "apiVersion" "ip-reaper/v1alpha1" "kind" "ReapPolicy" "dryRun" (ne .Values.node.mode "release") -}}
{{- range $field, $value := .Values.node.policy -}}
  {{- $_ := set $policy $field $value -}}
{{- end -}}
{{- with .Values.node.backends -}}
  {{- $_ := set $policy "backends" . -}}
{{- end -}}
{{- toYaml $policy -}}
{{- end }}

{{/*
The pod of the DaemonSet. Each folder has the path that it has on the node, but for the network
configurations.
*/}}
{{- define "ip-reaper.nodePod" -}}
{{- $values := .Values -}}
{{- $name := printf "%s-node" (include "ip-reaper.fullname" .) -}}
{{- $runtime := dir .Values.node.runtimeSocket -}}
{{- $shared := has $runtime (list "/run" "/var/run") -}}
{{- if $shared -}}
  {{- $runtime = .Values.node.runtimeSocket -}}
{{- end -}}
serviceAccountName: {{ $name | quote }}
automountServiceAccountToken: {{ $values.node.apiServer }}
enableServiceLinks: false
# After SIGTERM, a run ends its write, and says what it did in the ledger and metrics.
terminationGracePeriodSeconds: 60
# A pod that frees addresses must not wait for one. And Azure CNS listens on the node's
# localhost.
hostNetwork: true
dnsPolicy: Default
{{- with $values.imagePullSecrets }}
{{ toYaml (dict "imagePullSecrets" .) }}
{{- end }}
nodeSelector:
  {{- merge (dict "kubernetes.io/os" "linux") $values.node.nodeSelector | toYaml | nindent 2 }}
# Virtual nodes have no container runtime. Their taint does not keep away a pod that
# tolerates all taints.
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions:
        - key: type
          operator: NotIn
          values: [virtual-kubelet]
        - key: eks.amazonaws.com/compute-type
          operator: NotIn
          values: [fargate]
{{- range $field := list "priorityClassName" "tolerations" }}
{{- with get $values.node $field }}
{{ toYaml (dict $field .) }}
{{- end }}
{{- end }}
securityContext:
  # The leases and the socket belong to root, and only root may use them.
  runAsUser: 0
  runAsGroup: 0
  seccompProfile:
    type: RuntimeDefault
  {{- with $values.node.seLinuxType | default (ternary "spc_t" "" (eq (include "ip-reaper.openshift" .) "true")) }}
  seLinuxOptions:
    type: {{ . | quote }}
  {{- end }}
containers:
- name: ip-reaper
  image: {{ include "ip-reaper.image" . | quote }}
  imagePullPolicy: {{ $values.image.pullPolicy | quote }}
  args:
  - node
  - {{ printf "--every=%s" $values.node.every | quote }}
  - --policy=/etc/ip-reaper/policy.yaml
  # Persist first-seen times, so that grace periods can elapse. A run that releases always
  # does.
  - --remember
  {{- if $values.node.apiServer }}
  - --pods=api
  {{- end }}
  {{- with $values.node.metricsFolder }}
  - {{ printf "--metrics-file=%s/ip-reaper.prom" . | quote }}
  {{- end }}
  env:
  # The report names the node.
  - name: NODE_NAME
    valueFrom:
      fieldRef:
        fieldPath: spec.nodeName
  # The program refuses a container runtime that does not have the sandbox of this pod.
  - name: POD_UID
    valueFrom:
      fieldRef:
        fieldPath: metadata.uid
  # A journal names the pod that wrote it.
  - name: POD_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  - name: CONTAINER_RUNTIME_ENDPOINT
    value: {{ printf "unix://%s" $values.node.runtimeSocket | quote }}
  {{- with $values.node.goMemLimit }}
  # Just below the container's memory limit: the Go runtime collects garbage more often as
  # it comes close.
  - name: GOMEMLIMIT
    value: {{ . | quote }}
  {{- end }}
  {{- with $values.node.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    # Root without capabilities: the owner of root's files, and no more.
    capabilities:
      drop: [ALL]
  terminationMessagePolicy: FallbackToLogsOnError
  volumeMounts:
  - name: policy
    mountPath: /etc/ip-reaper
    readOnly: true
  # Ledger, journals and lock of this node.
  - name: state
    mountPath: /var/lib/ip-reaper
  # The leases (networks) and libcni's cache of attachments (results). What the node mounts
  # there later appears here too.
  - name: cni
    mountPath: /var/lib/cni
    mountPropagation: HostToContainer
  # Which networks are the container runtime's, and where their data folders are. The program
  # looks here, wherever the node has them.
  - name: conf
    mountPath: /etc/cni/net.d
    readOnly: true
  # Does the network namespace of a sandbox still exist?
  - name: netns
    mountPath: /var/run/netns
    readOnly: true
    mountPropagation: HostToContainer
  # The subnet that flannel gave this node, if it did.
  - name: flannel
    mountPath: /run/flannel
    readOnly: true
  {{- if $shared }}
  # Only the socket: the folder has much else. If the socket is recreated, recreate the pod.
  {{- else }}
  # The folder, not the socket: a runtime that restarts makes a new socket. What is unmounted
  # there is unmounted here too.
  {{- end }}
  - name: runtime
    mountPath: {{ $runtime | quote }}
    readOnly: true
    mountPropagation: HostToContainer
  {{- range $i, $folder := $values.node.dataDirs }}
  - name: data{{ if $i }}-{{ $i }}{{ end }}
    mountPath: {{ $folder | quote }}
    mountPropagation: HostToContainer
  {{- end }}
  {{- with $values.node.metricsFolder }}
  - name: metrics
    mountPath: {{ . | quote }}
  {{- end }}
volumes:
- name: policy
  configMap:
    name: {{ printf "%s-policy" $name | quote }}
- name: state
  hostPath:
    path: /var/lib/ip-reaper
    type: DirectoryOrCreate
- name: cni
  hostPath:
    path: /var/lib/cni
    type: DirectoryOrCreate
- name: conf
  hostPath:
    path: {{ $values.node.confDir | quote }}
    type: DirectoryOrCreate
- name: netns
  hostPath:
    path: /var/run/netns
    type: DirectoryOrCreate
- name: flannel
  hostPath:
    path: /run/flannel
    type: DirectoryOrCreate
- name: runtime
  hostPath:
    path: {{ $runtime | quote }}
    type: {{ ternary "Socket" "Directory" $shared }}
{{- range $i, $folder := $values.node.dataDirs }}
- name: data{{ if $i }}-{{ $i }}{{ end }}
  hostPath:
    path: {{ $folder | quote }}
    type: DirectoryOrCreate
{{- end }}
{{- with $values.node.metricsFolder }}
- name: metrics
  hostPath:
    path: {{ . | quote }}
    type: Directory
{{- end }}
{{- end }}
