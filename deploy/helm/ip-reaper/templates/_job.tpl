{{/*
The fields that both kinds of CronJobs have, and their jobTemplate. Takes root and
account; policy, the file of the ConfigMap; args, more of the program's; and deadline,
retries and final, the exit codes that are not tried again.
*/}}
{{- define "ip-reaper.cronjob" -}}
{{- $values := .root.Values -}}
timeZone: {{ $values.timeZone | quote }}
# A Job ends only when its pod is gone. One on a node that died is in the way of the
# next start until the node is back, deleted, or tainted out-of-service, or the pod
# is deleted by force.
concurrencyPolicy: Forbid
startingDeadlineSeconds: {{ $values.startingDeadlineSeconds }}
successfulJobsHistoryLimit: {{ $values.successfulJobsHistoryLimit }}
failedJobsHistoryLimit: {{ $values.failedJobsHistoryLimit }}
jobTemplate:
  metadata:
    labels:
      {{- include "ip-reaper.jobLabels" . | nindent 6 }}
  spec:
    # Over the run's own --timeout, so that a run ends itself and reports.
    activeDeadlineSeconds: {{ .deadline }}
    backoffLimit: {{ .retries }}
    ttlSecondsAfterFinished: {{ $values.ttlSecondsAfterFinished }}
    podFailurePolicy:
      rules:
      # Evicted or preempted: that was not the run's fault.
      - action: Ignore
        onPodConditions:
        - type: DisruptionTarget
          status: "True"
      # The same would happen again.
      - action: FailJob
        onExitCodes:
          containerName: ip-reaper
          operator: In
          values: {{ .final }}
    template:
      metadata:
        labels:
          {{- merge (include "ip-reaper.jobLabels" . | fromYaml) $values.podLabels | toYaml | nindent 10 }}
        {{- with $values.podAnnotations }}
        annotations:
          {{- toYaml . | nindent 10 }}
        {{- end }}
      spec:
        {{- include "ip-reaper.pod" . | nindent 8 }}
{{- end }}
