{{/*
The fields that both kinds of CronJobs share, and their jobTemplate. Takes root and
account; args, a list of further arguments of the program; deadline and retries.
*/}}
{{- define "ip-reaper.cronjob" -}}
{{- $values := .root.Values -}}
timeZone: {{ $values.timeZone | quote }}
concurrencyPolicy: {{ $values.concurrencyPolicy | quote }}
startingDeadlineSeconds: {{ $values.startingDeadlineSeconds }}
successfulJobsHistoryLimit: {{ $values.successfulJobsHistoryLimit }}
failedJobsHistoryLimit: {{ $values.failedJobsHistoryLimit }}
jobTemplate:
  metadata:
    labels:
      {{- include "ip-reaper.jobLabels" . | nindent 6 }}
  spec:
    # Longer than --timeout, so that a run ends by itself and reports.
    activeDeadlineSeconds: {{ .deadline }}
    backoffLimit: {{ .retries }}
    ttlSecondsAfterFinished: {{ $values.ttlSecondsAfterFinished }}
    podFailurePolicy:
      rules:
      # An eviction or a preemption is not a failure of the run.
      - action: Ignore
        onPodConditions:
        - type: DisruptionTarget
          status: "True"
      # A bad policy (2) or a refused plan (4) would fail again. If another run has the lock (5), it
      # ends soon, and a killed one blocks it for half a minute.
      - action: FailJob
        onExitCodes:
          containerName: ip-reaper
          operator: In
          values: [2, 4]
    template:
      metadata:
        labels:
          {{- include "ip-reaper.jobLabels" (merge (dict "labels" $values.podLabels) .) | nindent 10 }}
        {{- with $values.podAnnotations }}
        annotations:
          {{- toYaml . | nindent 10 }}
        {{- end }}
      spec:
        {{- include "ip-reaper.pod" . | nindent 8 }}
{{- end }}
