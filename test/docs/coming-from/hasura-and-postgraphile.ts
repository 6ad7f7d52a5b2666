import { z } from 'zod';
import {
  CommandRejected,
  defineCommand,
  defineEvents,
  defineImport,
  defineProjection,
  defineState,
  t,
} from '../../../src/index.ts';

interface TodoRow {
  readonly id: string;
  readonly owner_id: string;
  readonly title: string;
  readonly done: boolean;
}

export const todo = defineEvents('todo', {
  TodoTakenOver: z.object({ ownerId: z.string(), title: z.string(), done: z.boolean() }),
  TodoDone: z.object({}),
});

const todoState = defineState(todo, (): { ownerId: string | null } => ({ ownerId: null }), {
  TodoTakenOver: (_, { payload }) => ({ ownerId: payload.ownerId }),
});

export const completeTodo = defineCommand({
  name: 'completeTodo',
  input: z.object({ todoId: z.string() }),
  state: todoState,
  stream: ({ todoId }) => todoId,
  decide(_, { ownerId }, { metadata }) {
    if (ownerId === null || ownerId !== metadata.actor) throw new CommandRejected('This is not your todo.');
    return { type: 'TodoDone', payload: {} };
  },
});

export const todoV1 = defineProjection({
  name: 'todo',
  version: 1,
  events: todo,
  table: {
    todoId: t.text().primaryKey(),
    ownerId: t.text().index(),
    title: t.text(),
    done: t.boolean().index(),
  },
  key: (event) => event.streamId,
  evolve: {
    TodoTakenOver: (_, { payload }) => payload,
    TodoDone: (row) => row && { ...row, done: true },
  },
  access: { rows: (viewer) => ({ ownerId: { eq: viewer.id } }) },
});

export const todoImport = defineImport({
  name: 'todos',
  async *toAppends(lines) {
    for await (const { text } of lines) {
      const { id, owner_id: ownerId, title, done }: TodoRow = JSON.parse(text);
      yield {
        family: todo,
        streamId: id,
        expectedVersion: 'no-stream',
        events: [{ type: 'TodoTakenOver', payload: { ownerId, title, done } }],
        idempotencyKey: `todos:${id}`,
      };
    }
  },
});
