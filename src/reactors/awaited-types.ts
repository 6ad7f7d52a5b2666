import { invalidDeclaration } from '../errors.ts';
import { closest } from '../events/closest.ts';
import type { RecordedEvent } from '../events/event.ts';
import type { EventFamily } from '../events/event-family.ts';

/** The event types that handlers wait for, with the functions that return the keys of their events. */
export type AwaitedTypes = ReadonlyMap<
  string,
  {
    readonly family: string;
    /** The name under which the log keeps the type. Waits are stored with it, so they survive a renaming. */
    readonly storedType: string;
    readonly keyOf: (event: RecordedEvent) => unknown;
  }
>;

/** Checks the option `waitsFor`. @throws RefoldError `INVALID_DECLARATION` */
export function awaitedTypes(subject: string, families: readonly EventFamily[], waitsFor: unknown): AwaitedTypes {
  if (waitsFor === undefined) return new Map();
  const example = `such as { PaymentReceived: ({ payload }) => payload.orderId }`;
  if (typeof waitsFor !== 'object' || waitsFor === null || Array.isArray(waitsFor))
    throw invalidDeclaration(
      subject,
      `'waitsFor' names the event types that handlers wait for, each with a function that returns the key of an event, ${example}.`,
    );
  const types = Object.entries(waitsFor).map(([type, keyOf]: [string, unknown]) => {
    const family = familyOf(subject, 'waitsFor', families, type);
    const [storedType = type] = families.find(({ name }) => name === family)?.typeNames[type] ?? [];
    if (typeof keyOf !== 'function')
      throw invalidDeclaration(subject, `waitsFor.${type} is no function. It returns the key of an event, ${example}.`);
    return [type, { family, storedType, keyOf: (event: RecordedEvent): unknown => keyOf(event) }] as const;
  });
  if (types.length === 0)
    throw invalidDeclaration(subject, `'waitsFor' names no event type; name at least one, or leave it out.`);
  checkStoredTypes(
    subject,
    types.map(([type, { storedType }]) => [type, storedType]),
  );
  return new Map(types);
}

/** Waits know a type by the name under which the log keeps it. */
function checkStoredTypes(subject: string, types: readonly (readonly [string, string])[]): void {
  for (const [storedType, same] of Map.groupBy(types, ([, stored]) => stored)) {
    if (same.length > 1)
      throw invalidDeclaration(
        subject,
        `waitsFor names ${same.map(([type]) => `'${type}'`).join(' and ')}, which the log keeps under one name, '${storedType}'. Wait for them in two reactors.`,
      );
  }
}

/** The family that defines the event type which an option names. @throws RefoldError `INVALID_DECLARATION` */
export function familyOf(subject: string, option: string, families: readonly EventFamily[], type: string): string {
  const owners = families.filter((family) => family.types.includes(type)).map(({ name }) => name);
  const [owner] = owners;
  if (owner === undefined) {
    const types = families.flatMap((family) => family.types);
    const names = families.map(({ name }) => name).join(', ');
    throw invalidDeclaration(
      subject,
      `${option} names '${type}', which ${names} does not define.${closest(type, types)}`,
    );
  }
  if (owners.length > 1) {
    const wayOut =
      option === 'handle'
        ? 'Handle all events with one function, or rename one of the event types.'
        : 'Rename one of the event types.';
    throw invalidDeclaration(
      subject,
      `${option} names '${type}', which ${owners.join(' and ')} both define. ${wayOut}`,
    );
  }
  return owner;
}
