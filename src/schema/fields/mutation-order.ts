import { defaultFieldResolver, type GraphQLSchema } from 'graphql';
import type { OperationContext } from '../contract/operation-context.ts';

/** Lets an operation know which field of its mutation is executed, of the application's own fields too: what commands write belongs to it. */
export function announceMutationFields(schema: GraphQLSchema): GraphQLSchema {
  for (const field of Object.values(schema.getMutationType()?.getFields() ?? {})) {
    const { resolve = defaultFieldResolver } = field;
    field.resolve = (source, args, context: OperationContext, info) => {
      context.beginField?.(String(info.path.key));
      return resolve(source, args, context, info);
    };
  }
  return schema;
}
