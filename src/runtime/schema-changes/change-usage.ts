import type { ActivationRule } from '../../projections/declaration/activation-rule.ts';
import type { Projection } from '../../projections/declaration/projection.ts';
import type { SchemaChange } from '../../schema/analysis/schema-diff.ts';
import { breakingText, foldChanges } from '../../schema/fold-changes.ts';
import type { VersionChange } from '../../schema/version-changes.ts';
import type { Queryable } from '../../store/postgres/statement.ts';
import { type FieldUsage, readUsage, recordedDays } from '../../store/registry/field-usage.ts';
import type { SchemaChanges } from './schema-changes.ts';

/** A change, with those who lately asked for what it concerns. */
export interface UsedChange extends VersionChange {
  /** Of a breaking change: by client, those who asked most first. Without those who pin a version: nothing changes for them. */
  readonly askedBy: readonly FieldUsage[];
}

/** The changes between two versions, with who would notice. */
export interface UsedChanges extends SchemaChanges {
  readonly changes: readonly UsedChange[];
  /** The days that were looked at. */
  readonly days: number;
  /** For how many days all gateways have recorded what clients ask for; null where one of them does not. */
  readonly recordedDays: number | null;
}

/** Clients that are released once a month are seen in that time. */
export const usualDays = 30;

/** Looks up who asked for what breaks. */
export async function withUsage(
  db: Queryable,
  name: string,
  found: SchemaChanges,
  days: number = usualDays,
): Promise<UsedChanges> {
  const breaking = found.changes.filter(({ criticality }) => criticality === 'breaking');
  const paths = breaking.flatMap(({ concerns }) => concerns ?? []);
  const usage = paths.length === 0 ? [] : await readUsage(db, { days, paths, unpinnedFrom: name });
  return {
    ...found,
    changes: found.changes.map((change) => ({
      ...change,
      askedBy: breaking.includes(change) ? usage.filter(({ path }) => isConcerned(change, path)) : [],
    })),
    days,
    recordedDays: await recordedDays(db),
  };
}

function isConcerned({ concerns }: SchemaChange, path: string): boolean {
  return path === concerns || (concerns !== null && !concerns.includes('.') && path.startsWith(`${concerns}.`));
}

/** A version, with what its declaration says of breaking changes. */
export type WithBreakingRule = Pick<Projection, 'name' | 'version'> & {
  readonly activation: Pick<ActivationRule, 'breaking'>;
};

/** Why changes hold a version at ready, by its rule: null where they don't. */
export async function holdingReason(
  db: Queryable,
  { name, version, activation: { breaking } }: WithBreakingRule,
  found: SchemaChanges,
): Promise<string | null> {
  if (breaking === 'allow' || found.breaking.length === 0) return null;
  const used = await withUsage(db, name, found, breaking === 'hold' ? usualDays : breaking.unusedDays);
  if (breaking !== 'hold' && isUnused(used)) return null;
  return `${whatBreaks(name, version, found)}${usageSentence(used)}`;
}

/** `8 breaking changes, see 'refold changes balance@2'.` */
export function whatBreaks(name: string, version: number, { changes }: SchemaChanges): string {
  return `${breakingText(changes)}, see 'refold changes ${name}@${version}'.`;
}

/** Whether it is known that nobody has asked for what breaks in all of the days. */
function isUnused({ changes, days, recordedDays: recorded }: UsedChanges): boolean {
  if (recorded === null || recorded < days) return false;
  return changes.every(
    ({ criticality, concerns, askedBy }) => criticality !== 'breaking' || (concerns !== null && askedBy.length === 0),
  );
}

// A reason is read in a terminal; `refold changes` has them all.
const shownChanges = 3;
const shownClients = 3;

function usageSentence({ changes, days, recordedDays: recorded }: UsedChanges): string {
  const used = foldChanges(changes)
    .map(({ head, derived }) => ({ path: head.path, askedBy: [head, ...derived].flatMap(({ askedBy }) => askedBy) }))
    .filter(({ askedBy }) => askedBy.length > 0);
  if (used.length > 0) {
    const shown = used.slice(0, shownChanges).map(({ path, askedBy }) => `${path} by ${clientsText(askedBy)}`);
    const more = used.length > shown.length ? `; and ${used.length - shown.length} more` : '';
    return ` Asked for in the last ${days} days: ${shown.join('; ')}${more}.`;
  }
  if (recorded === null) return '';
  const time = recorded >= days ? `in the last ${days} days` : `since recording began ${ageText(recorded)} ago`;
  return ` Nobody has asked for any of it ${time}.`;
}

/** `web 3.2 (1204 operations, last 2026-11-21)`, with the same client's fields put together. */
export function clientsText(askedBy: readonly FieldUsage[], most: number = shownClients): string {
  const clients = [
    ...Map.groupBy(askedBy, ({ client, clientVersion }) => `${client} ${clientVersion}`.trim()).entries(),
  ];
  const texts = clients.slice(0, most).map(([client, usage]) => {
    // Of several fields under one name the one that is asked for most: an operation may ask for all of them.
    const operations = Math.max(...usage.map((one) => one.operations));
    const last = usage
      .map(({ lastAt }) => lastAt.slice(0, 10))
      .toSorted()
      .at(-1);
    return `${client} (${operations} ${operations === 1 ? 'operation' : 'operations'}, last ${last})`;
  });
  return [...texts, ...(clients.length > most ? [`${clients.length - most} more`] : [])].join(', ');
}

/** `12 days`, `3 h`, `5 min`. */
export function ageText(days: number): string {
  if (days >= 1) return `${Math.floor(days)} ${days < 2 ? 'day' : 'days'}`;
  const hours = Math.floor(days * 24);
  return hours >= 1 ? `${hours} h` : `${Math.floor(days * 1440)} min`;
}
