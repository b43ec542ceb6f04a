# Calls Tatami's scripts by Redis.pm. A file to copy; lua/README.md is the contract.
use v5.36; use Digest::SHA qw(sha1_hex);

# path: of a script. Returns a function of keys and arguments. Redis.pm may send again what it
# could not send whole, but never what it has sent.
sub script ($client, $path) {
    open my $file, '<:raw', $path or die "$path: $!";
    my $text = join '', <$file>;
    my $sha = sha1_hex($text);
    return sub ($keys, @args) {
        my @reply = eval { $client->evalsha($sha, scalar @$keys, @$keys, @args) };
        die $@ if $@ && $@ !~ /^\[evalsha\] NOSCRIPT/;
        return $@ ? $client->eval($text, scalar @$keys, @$keys, @args) : @reply;
    };
}

# path: of gcra_v2.lua or window_v1.lua. Returns allow.
sub limiter ($client, $path) {
    my $call = script($client, $path);
    # args: amount, period_ns, burst or mode, cost[, now_ns].
    # Returns (status, remaining, retry_after_ns, reset_after_ns).
    return sub ($key, @args) { $call->([$key], @args) };
}

# path: of limits_v1.lua. Returns reserve and settle. An ask is [key, limit, cost]. A limit is a hash of
# kind (gcra, fixed or sliding), amount, period_ns, for gcra burst, and name, which may be left out.
sub reserver ($client, $path) {
    my $call = script($client, $path);
    my $send = sub (@asks) {
        my @args = map {
            my ($key, $limit, $cost, $receipt) = @$_;
            ($limit->@{qw(kind amount period_ns)}, $limit->{burst} // '', $cost, $receipt // '');
        } @asks;
        return $call->([map { limit_key(@$_[0, 1]) } @asks], '', @args); # '': the server's clock
    };
    # Charges all asks, or none. Returns status (1 charged, 0 refused, -1 never), retry_after_ns,
    # results (for each ask [status, remaining, retry_after_ns, reset_after_ns, receipt]) and
    # binds, the number of the ask that refuses, from 0.
    my $reserve = sub (@asks) {
        my ($status, $wait, @results) = $send->(@asks);
        my ($binds) = grep { $status != 1 && $results[$_][2] == $wait } 0 .. $#results;
        return {status => $status, retry_after_ns => $wait, results => \@results, binds => $binds, asks => \@asks};
    };
    # used: of each ask the units really used; all 0 cancels. Sends once, and only once.
    my $settle = sub ($reservation, @used) {
        my ($asks, $results) = $reservation->@{qw(asks results)};
        die 'used must be a number from 0 for each ask' if @used != @$asks || grep { !/^[0-9]+$/ } @used;
        my @changes;
        for (0 .. $#used) {
            my ($ask, $receipt) = ($asks->[$_], $results->[$_][4]);
            my $change = $receipt eq '' ? $used[$_] : $used[$_] - $ask->[2]; # without one nothing was charged
            die 'used more than 0 of what was not charged' if $change && $receipt eq '';
            push @changes, [@$ask[0, 1], $change, $receipt] if $change;
        }
        return if !@changes || $reservation->{settled};
        $reservation->{settled} = 1; # also when the call fails: a second give-back admits too much
        $send->(@changes);
        return;
    };
    return ($reserve, $settle);
}

# The key that the Go loader and tatami use.
sub limit_key ($key, $limit) {
    my $name = $limit->{name} // '';
    die "no key, or a bad name: $key, $name" if $key eq '' || $name !~ /^([A-Za-z][A-Za-z0-9_.-]{0,99})?\z/;
    my $period = $limit->{kind} eq 'gcra' ? '' : $limit->{period_ns};
    return join ':', grep { $_ ne '' } 'rl', $key =~ /\{/ ? $key : "{$key}", $name, $period;
}
1;
