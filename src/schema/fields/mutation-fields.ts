import type { InterfaceRef, ObjectRef } from '@pothos/core';
import type { Command } from '../../commands/define-command.ts';
import { tokenText } from '../../events/position-token.ts';
import type { Projection, RowKey } from '../../projections/projection/projection.ts';
import { columnSelection } from '../analysis/selected-columns.ts';
import type { Builder, Root, Types } from '../builder/builder.ts';
import { inputJsonSchema } from '../builder/json-schema.ts';
import { pascalCase, type TypeNames } from '../builder/type-names.ts';
import type { CommandResult } from '../contract/operation-context.ts';
import { type CommandInput, commandInput, type InputPart } from '../types/command-input.ts';
import type { NamedInputs } from '../types/named-inputs.ts';
import type { ProjectionTypes } from '../types/projection-types.ts';
import { badInput } from '../values/canonical-input.ts';
import { checkStorable, isStorable } from '../values/storable-input.ts';
import { writtenToken } from '../values/written-token.ts';
import { beforeRead } from './before-read.ts';

/** Adds the mutation of one command, and its payload with the rows that its events may touch. `base` is the interface of all payloads. */
export function addMutationField(
  builder: Builder,
  names: TypeNames,
  command: Command,
  projections: readonly ProjectionTypes[],
  base: InterfaceRef<Types, CommandResult>,
  named: NamedInputs<InputPart>,
): void {
  const owner = `defineCommand('${command.name}')`;
  const prefix = pascalCase(command.name);
  const payload = payloadOf(builder, names, names.claim(`${prefix}Payload`, owner), owner, command, projections, base);
  const input = commandInput(inputJsonSchema(command.input, owner), { builder, names, owner, prefix, named });
  builder.mutationField(names.claimField('Mutation', command.name, owner), (t) =>
    t.field({
      type: payload,
      // Nullable: a failed mutation must not discard the payloads of those before it, which have been executed.
      nullable: true,
      description: command.description ?? `Executes the command \`${command.name}\`.`,
      args: {
        ...(input
          ? { input: t.arg({ type: input.type, required: input.required, description: 'The input of the command.' }) }
          : {}),
        expectedVersion: t.arg.int({
          required: false,
          description:
            'The version of the stream that the client has seen: `streamVersion` of a payload, or 0 for no stream. If the stream has another version, the command is refused with CONCURRENCY_CONFLICT.',
        }),
        idempotencyKey: t.arg.string({
          required: false,
          description:
            'Identifies this execution among those of the viewer. If it is sent again with the same input, nothing is done and the payload is that of the first time. With another input it is refused.',
        }),
      },
      resolve(_, args, context) {
        const given = inputOf(input, args);
        checkStorable(command.name, given);
        return context.commands.execute(command, given, {
          ...optional('expectedVersion', checkedVersion(args.expectedVersion)),
          ...optional('idempotencyKey', checkedKey(args.idempotencyKey)),
        });
      },
    }),
  );
}

/** `CommandPayload`: the fields of all payloads. */
export function commandPayload(builder: Builder, query: ObjectRef<Types, Root>): InterfaceRef<Types, CommandResult> {
  return builder.interfaceRef<CommandResult>('CommandPayload').implement({
    description: 'The fields that all command payloads have.',
    fields: (t) => ({
      position: t.field({
        type: 'Position',
        description: 'The position of the last event that was written. Pass it to `@after` to read what was written.',
        resolve: (result) => tokenText(writtenToken(result)),
      }),
      streamId: t.id({
        description: 'The stream of the command.',
        resolve: (result) => result.streamId,
      }),
      streamVersion: t.int({
        description: 'The version of the stream after the command, for `expectedVersion` of the next command.',
        resolve: (result) => result.streamVersion,
      }),
      query: t.field({
        type: query,
        // A read that fails must not turn a command that was written into null.
        nullable: true,
        description:
          'Queries whose results include what was written. Null if a part of them that is never null can not be read.',
        resolve: (result) => ({ after: result.position }),
      }),
    }),
  });
}

function payloadOf(
  builder: Builder,
  names: TypeNames,
  name: string,
  owner: string,
  command: Command,
  projections: readonly ProjectionTypes[],
  base: InterfaceRef<Types, CommandResult>,
) {
  for (const field of ['position', 'streamId', 'streamVersion', 'query']) names.claimField(name, field, 'Refold');
  const payload = builder.objectRef<CommandResult>(name).implement({
    description: `The payload of \`${command.name}\`.`,
    interfaces: [base],
  });
  for (const types of projections) {
    if (!touches(command, types.projection)) continue;
    addRowField(
      builder,
      names.claimField(name, types.projection.graphql.single, `${owner} with ${types.projection.id}`),
      payload,
      types,
    );
  }
  return payload;
}

/** Whether the command's events may touch rows of the projection, with keys that are known. */
function touches({ families, emits }: Command, { filter, sqlFold }: Projection): boolean {
  // A set-based fold computes its keys only in SQL.
  if (sqlFold) return false;
  return filter.some(
    (handled) =>
      families.some(({ name }) => name === handled.family) && handled.types.some((type) => emits.includes(type)),
  );
}

function addRowField(
  builder: Builder,
  name: string,
  payload: ObjectRef<Types, CommandResult>,
  { served, projection, row }: ProjectionTypes,
) {
  const columnsOf = columnSelection(projection, [[]]);
  builder.objectField(payload, name, (t) =>
    t.field({
      type: row,
      nullable: true,
      description: 'The row that the written events change, after the change. Null if they change none.',
      async resolve(result, _, context, info) {
        const key = touchedKey(projection, result);
        if (!key) return null;
        const waiting = beforeRead(served, context, result.position, info);
        if (waiting) await waiting;
        const [found] = await context.readModels.findByKeys(projection, [key], columnsOf(info));
        return found;
      },
    }),
  );
}

/** Returns the key of the first row touched by the last event that touches a row. Events of the payload's own stream come first. */
function touchedKey(projection: Projection, { streamId: own, events }: CommandResult): RowKey | undefined {
  const latest = events
    .toReversed()
    .filter(({ family, type }) =>
      projection.filter.some((handled) => handled.family === family && handled.types.includes(type)),
    );
  return [...latest.filter(({ streamId }) => streamId === own), ...latest.filter(({ streamId }) => streamId !== own)]
    .map((event) => projection.keysOf(event)[0])
    .find((key) => key !== undefined);
}

function inputOf(input: CommandInput | null, args: object): unknown {
  const given = 'input' in args ? args.input : undefined;
  return input && given !== null && given !== undefined ? input.clean(given) : {};
}

function checkedVersion(version: number | null | undefined): number | undefined {
  if (typeof version === 'number' && version < 0)
    throw badInput(`'expectedVersion' is ${version}; it is 0 for no stream, or a version that was answered.`);
  return version ?? undefined;
}

function checkedKey(key: string | null | undefined): string | undefined {
  // Keys are stored in an index; PostgreSQL limits index entries to 2704 bytes.
  if (key === '' || (key && key.length > 200)) throw badInput("'idempotencyKey' has 1 to 200 characters.");
  if (key && !isStorable(key))
    throw badInput("'idempotencyKey' has the character U+0000, or half of a surrogate pair; use printable characters.");
  return key ?? undefined;
}

function optional<Name extends string, T>(name: Name, value: T | undefined): { [N in Name]?: T } {
  return (value === undefined ? {} : { [name]: value }) as { [N in Name]?: T }; // at most one entry
}
