-- Refuses a value in the middle of a statement, so that what the SQL of a declaration gives is checked and never rounded or cut.
create function refold.refuse_value(value anyelement, problem text) returns anyelement language plpgsql volatile as $$
begin
  raise exception '%, found %.', problem, value using errcode = 'data_exception';
end $$;
