/** Who makes a step in the life of a version, and why; kept in the audit log. */
export interface StepReason {
  readonly actor: string;
  readonly reason: string;
}

export interface ActivateOptions {
  /** Also where clients of the version that answers would lose fields, arguments or types. @default false */
  readonly allowBreaking?: boolean;
}
