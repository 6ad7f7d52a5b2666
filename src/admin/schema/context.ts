import type DataLoader from 'dataloader';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { RowKey } from '../../projections/projection/projection.ts';
import type { Actions } from '../../runtime/actions/actions.ts';
import type { InspectedApplication } from '../../runtime/inspection/application.ts';
import type { InspectedLetter } from '../../runtime/inspection/letters.ts';
import type { Overview, OverviewReader } from '../../runtime/inspection/overview.ts';
import type { ReactorOperations } from '../../runtime/reactors/reactor-operations.ts';
import type { StoredEvent } from '../../store/browsing/search-events.ts';
import type { Caller } from '../access/require-right.ts';

/** What the admin API needs of the process. */
export interface AdminServices {
  readonly application: InspectedApplication;
  readonly overview: OverviewReader;
  readonly reactors: Pick<ReactorOperations, 'waiting'>;
  readonly actions: Actions;
  /** The name of this process. */
  readonly process: string;
  /** Whether the keys of a version's rows are personal or have an access rule. */
  hidesKeys(version: string): boolean;
  /** Runs a heavy read: one at a time in a process. @throws RefoldError `RATE_LIMITED` while another one runs */
  heavy<T>(work: () => Promise<T>): Promise<T>;
  /** Each overview that is read, while somebody follows them, until the signal aborts. */
  overviews(signal: AbortSignal): AsyncIterable<Overview>;
  /** A value whenever the log may have grown, until the signal aborts. */
  appends(signal: AbortSignal): AsyncIterable<void>;
  /** Aborts when the process stops. */
  readonly stopping: AbortSignal;
}

export interface AdminContext {
  readonly caller: Caller;
  readonly services: AdminServices;
  /** Events by position, read together for all fields of an operation. */
  readonly events: DataLoader<GlobalPosition, StoredEvent | null>;
  /** The rows that have the unique values of a dead letter, read together as well. */
  readonly takenBy: DataLoader<InspectedLetter, readonly RowKey[] | null>;
}
