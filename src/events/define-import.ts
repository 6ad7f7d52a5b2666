import { invalidDeclaration } from '../errors.ts';
import type { ExpectedVersion, NewEvent } from './event.ts';
import type { EventFamily } from './event-family.ts';

/** One line of an imported file. */
export interface ImportLine {
  readonly text: string;
  /** Starts at 1. */
  readonly number: number;
}

/** Events of one stream, appended together, that some lines of the file become. */
export interface ImportedAppend {
  readonly family: EventFamily;
  readonly streamId: string;
  readonly events: readonly NewEvent[];
  /**
   * Must be the same for the same lines in every run, and unique in the log: Refold skips keys that were imported before. At most 1 KiB.
   */
  readonly idempotencyKey: string;
  readonly expectedVersion?: ExpectedVersion;
}

/** Defines how a file becomes events. Created by {@link defineImport}. */
export interface Import {
  readonly kind: 'import';
  readonly name: string;
  readonly description?: string;
  toAppends(lines: AsyncIterable<ImportLine>): AsyncIterable<ImportedAppend>;
}

/**
 * Declares how a text file, read line by line, becomes events. `refold import NAME FILE` runs it. Run an interrupted import again from the
 * start. Idempotency keys skip what was imported, one range of the file at a time.
 *
 * @throws RefoldError `INVALID_DECLARATION`
 * @example
 * export const retailImport = defineImport({
 *   name: 'online-retail',
 *   async *toAppends(lines) {
 *     for await (const { text, number } of lines) {
 *       const row = JSON.parse(text);
 *       yield { family: invoice, streamId: row.InvoiceNo, events: [toEvent(row)], idempotencyKey: `online-retail:${number}` };
 *     }
 *   },
 * });
 */
export function defineImport(options: Omit<Import, 'kind'>): Import {
  if (!/^[a-z][a-z0-9-]{0,62}$/.test(options.name))
    throw invalidDeclaration(
      `defineImport('${options.name}')`,
      `the name of an import is kebab-case, such as 'online-retail'.`,
    );
  if (typeof options.toAppends !== 'function')
    throw invalidDeclaration(`defineImport('${options.name}')`, `'toAppends' must be an async generator function.`);
  return Object.freeze({ kind: 'import', ...options });
}
