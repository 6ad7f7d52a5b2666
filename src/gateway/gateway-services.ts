import type { Command } from '../commands/define-command.ts';
import type { EventMetadata, ExpectedVersion } from '../events/event.ts';
import type { VersionMap } from '../projections/version-map.ts';
import type { CommandResult, LiveReadModels, ReadModels } from '../schema/operation-context.ts';

/** The reads of one operation, which has a start and an end. */
export interface OperationReadModels extends ReadModels {
  close(): Promise<void>;
}

export interface CommandOptions {
  readonly idempotencyKey?: string;
  readonly expectedVersion?: ExpectedVersion;
  /** Of the request: correlation and trace context. */
  readonly metadata?: EventMetadata;
}

/** What the gateway answers from. Implemented over the runtime, and in memory by tests. */
export interface GatewayServices {
  readonly versions: {
    current(): VersionMap;
    /** Called after each change of the map. Returns what ends it. */
    onChange(listener: () => void): () => void;
  };
  /** With `snapshot` all reads see one state of the database; without, look-ups may share statements with other operations. */
  openReadModels(options: { readonly snapshot: boolean }): OperationReadModels;
  execute(command: Command, input: unknown, options: CommandOptions): Promise<CommandResult>;
  readonly live: LiveReadModels;
}
