import type { ActivationRule } from '../../projections/projection/activation-rule.ts';
import type { Projection } from '../../projections/projection/projection.ts';
import type { SchemaChange } from '../../schema/analysis/schema-diff.ts';
import { breakingText, foldChanges } from '../../schema/fold-changes.ts';
import type { VersionChange } from '../../schema/version-changes.ts';
import { type FieldUsage, readUsage, recordedDays } from '../../store/registry/field-usage.ts';
import { logOf, type Queryable } from '../../store/statements/statement.ts';
import type { SchemaChanges } from './schema-changes.ts';

/** A change, with the clients that recently used what it concerns. */
export interface UsedChange extends VersionChange {
  /** For a breaking change: usage by client, most operations first. Clients that pin a version are left out: nothing changes for them. */
  readonly askedBy: readonly FieldUsage[];
}

/** The changes between two versions, with the clients that they affect. */
export interface UsedChanges extends SchemaChanges {
  readonly changes: readonly UsedChange[];
  /** The number of days of usage considered. */
  readonly days: number;
  /** For how many days all gateways have recorded usage; null if one of them does not. */
  readonly recordedDays: number | null;
}

/** Long enough to include clients that run or are released only once a month. */
export const usualDays = 30;

/** Adds which clients use what breaks. */
export async function withUsage(
  db: Queryable,
  name: string,
  found: SchemaChanges,
  days: number = usualDays,
): Promise<UsedChanges> {
  const breaking = found.changes.filter(({ criticality }) => criticality === 'breaking');
  const paths = breaking.flatMap(({ concerns }) => concerns ?? []);
  const usage = paths.length === 0 ? [] : await readUsage(logOf(db), { days, paths, unpinnedFrom: name });
  return {
    ...found,
    changes: found.changes.map((change) => ({
      ...change,
      askedBy: breaking.includes(change) ? usage.filter(({ path }) => isConcerned(change, path)) : [],
    })),
    days,
    recordedDays: await recordedDays(logOf(db)),
  };
}

function isConcerned({ concerns }: SchemaChange, path: string): boolean {
  return path === concerns || (concerns !== null && !concerns.includes('.') && path.startsWith(`${concerns}.`));
}

/** A version, with its declared rule for breaking changes. */
export type WithBreakingRule = Pick<Projection, 'name' | 'version'> & {
  readonly activation: Pick<ActivationRule, 'breaking'>;
};

/** Returns why changes hold a version at ready by its rule; null if they don't. */
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

/** For example `8 breaking changes, see 'refold changes balance@2'.` */
export function whatBreaks(name: string, version: number, { changes }: SchemaChanges): string {
  return `${breakingText(changes)}, see 'refold changes ${name}@${version}'.`;
}

/** Whether complete records show that no client used what breaks in all of the days. */
function isUnused({ changes, days, recordedDays: recorded }: UsedChanges): boolean {
  if (recorded === null || recorded < days) return false;
  return changes.every(
    ({ criticality, concerns, askedBy }) => criticality !== 'breaking' || (concerns !== null && askedBy.length === 0),
  );
}

// The reason must fit a terminal. `refold changes` lists them all.
const shownChanges = 3;
const shownClients = 3;

/** Names the clients that would notice, as far as a terminal has room. */
export function usageSentence({ changes, days, recordedDays: recorded }: UsedChanges): string {
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

/** For example `web 3.2 (1204 operations, last 2026-11-21)`. The fields of one client are combined. */
export function clientsText(
  askedBy: readonly Pick<FieldUsage, 'client' | 'clientVersion' | 'operations' | 'lastAt'>[],
  most: number = shownClients,
): string {
  const clients = [
    ...Map.groupBy(askedBy, ({ client, clientVersion }) => `${client} ${clientVersion}`.trim()).entries(),
  ];
  const texts = clients.slice(0, most).map(([client, usage]) => {
    // The highest count of the client's fields, because one operation may use all of them.
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
