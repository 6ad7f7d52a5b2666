/** Who changes the state of a version or a reactor, and why; stored in the audit log. */
export interface TransitionReason {
  readonly actor: string;
  readonly reason: string;
}

export interface ActivateOptions {
  /** Also activates if clients of the version that answers would lose fields, arguments or types. @default false */
  readonly allowBreaking?: boolean;
}
