import type { RecordedEvent } from '../../events/event.ts';
import { globalPosition } from '../../events/global-position.ts';
import { isEvolveFailure, sqlFoldFailed } from '../../projections/fold/fold-failures.ts';
import { keyText, type Projection } from '../../projections/projection/projection.ts';
import type { SqlFold } from '../../projections/projection/sql-fold.ts';
import type { DeadLetter } from '../../store/processors/dead-letters.ts';
import { createSetMerge } from '../../store/set-based/set-merge.ts';
import { qualified } from '../../store/statements/identifiers.ts';
import { savepoint } from '../../store/statements/savepoint.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { isSqlRowRefusal, refusalOf } from '../../store/tables/refused-rows.ts';

/** Folds the event of a dead letter into its row with `evolveSql`. */
export type SqlRedelivery = (
  letter: DeadLetter,
  event: RecordedEvent,
) => Promise<ReturnType<typeof sqlFoldFailed> | null>;

/** @returns a function that folds single letters, each as a batch of its own, and returns why one fails */
export function redeliveryBySql(
  tx: Queryable,
  readSchema: string,
  projection: Projection,
  fold: SqlFold,
): SqlRedelivery {
  const merge = createSetMerge(projection, fold, qualified(readSchema, projection.tableName), tx);
  const isUpcast = ({ family, type }: RecordedEvent) =>
    merge.upcast.some((filter) => filter.family === family && filter.types.includes(type));
  return async ({ key }, event) => {
    const batch = {
      after: globalPosition(event.position - 1n),
      upTo: event.position,
      upcast: isUpcast(event) ? [event] : [],
      choice: { only: [keyText(key ?? [])] },
    };
    try {
      await savepoint(tx, () => merge.run(tx, batch, { keys: false }));
      return null;
    } catch (error) {
      if (isEvolveFailure(error)) return error;
      if (!isSqlRowRefusal(projection, error)) throw error;
      return sqlFoldFailed(projection, event, refusalOf(projection, error));
    }
  };
}
